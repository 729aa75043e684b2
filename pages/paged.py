"""PagedAttention: several runs' notes in blocks of one pool, stepped through; room and time against one piece per run."""

from views import lab

lab.show("paged")
