"""PagedAttention: several runs' notes in blocks of one pool, stepped through; room and time against one piece each."""

from views import lab

lab.show("paged")
