"""Operator fusion: one layer's operations, joined and compiled, stepped through; what the engine's joining gains."""

from views import lab

lab.show("fusion")
