"""How a measurement is made: `clock`, others kept out and counted (`quiet`), a curve through points (`fit`).

Anything may be imported from outside; `fit` is pure.
"""
