"""Where weights come from: bundled packages, a folder, the model hub. Fetched, checked by hash, prepared once.

From outside: what is named here; `catalogue` lists the models this project knows. Torch is imported by `prepare` alone,
and only the standard library at import: `start.py` asks before anything is installed.
"""

from engine.weights.catalogue import DEFAULT, MODELS, Model, known
from engine.weights.store import (
    Progress,
    Source,
    fetch,
    fetched,
    folder,
    home,
    prepare,
    prepare_apart,
    present,
    resolve,
)

__all__ = [
    "DEFAULT",
    "MODELS",
    "Model",
    "Progress",
    "Source",
    "fetch",
    "fetched",
    "folder",
    "home",
    "known",
    "prepare",
    "prepare_apart",
    "present",
    "resolve",
]
