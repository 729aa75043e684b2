"""Forgetting notes: what is let go at which word, whether a fact survives, and what goes without the sink."""

from views import lab

lab.show("forgetting")
