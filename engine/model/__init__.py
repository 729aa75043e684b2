"""The model: loaded from a folder, its text, its arrangement for speed, and the tap that keeps queries on the way.

From outside: `load` and `wrap` give a `LanguageModel`; `tap.Pass` is one forward pass; `text` cuts and joins tokens.
A model knows nothing of runs.
"""

from engine.model.loading import LanguageModel, load, wrap

__all__ = [
    "LanguageModel",
    "load",
    "wrap",
]
