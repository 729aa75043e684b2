"""The model and its measurements: torch and transformers, no web, no plotting.

Only `engine.trace`, `engine.codec`, `engine.tracefile`, `engine.words`, `engine.settings`,
`engine.weights` and `engine.cost` may be imported by the pages' process; none of them imports torch
(`tests/test_imports.py` proves it in fresh interpreters).
"""
