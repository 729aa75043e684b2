"""One run's notes: the KV cache, in every way they can be kept, and what is read back from them.

From outside: `RunCache`, `Tape`, `Shape`; `keeping.make` chooses between whole, squeezed, forgetting and paged notes;
`lens.Lens` recomputes where a row looked. A cache knows nothing of the model that fills it.
"""

from engine.cache.base import ByLayer, RunCache, Shape, Tape, causal_mask

__all__ = [
    "ByLayer",
    "RunCache",
    "Shape",
    "Tape",
    "causal_mask",
]
