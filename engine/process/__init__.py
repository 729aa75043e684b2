"""The engine process: jobs in, events out. On top of everything, imported by nothing else in `engine`.

`serve.EngineProcess` holds models and runs, hands jobs what they need, and ends when its connection ends;
`python -m engine.process` starts it.
"""

from engine.process.serve import EngineProcess, Message

__all__ = [
    "EngineProcess",
    "Message",
]
