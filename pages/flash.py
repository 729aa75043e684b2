"""FlashAttention: attention by tiles, stepped through on a real head; its time and memory against the formula's."""

from views import lab

lab.show("flash")
