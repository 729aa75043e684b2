"""Speculative decoding: guessed words read in one pass; what is accepted, what it costs, when it loses."""

from views import lab

lab.show("speculative")
