"""Operator fusion: one layer's operations, joined and compiled, stepped through; what the engine's own joining gains."""

from views import lab

lab.show("fusion")
