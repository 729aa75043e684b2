"""What happened while a model answered, as small immutable events, and everything that follows from them alone.

`events` (what is told), `times` (TTFT, TPOT, ITL), `state` (the fold that is drawn), `codec` and `file` (text and
files, checked), `looks`, `summary`, `invariants`. Anything may be imported from outside; nothing here imports torch.
"""

from engine.trace.events import (
    KV,
    Bytes,
    Candidate,
    Chose,
    Decoded,
    Event,
    Facts,
    Finished,
    Forgot,
    Layer,
    Prefilled,
    Queued,
    Reason,
    Reused,
    Started,
    Token,
    Wrote,
    norm_byte,
    norm_of,
)
from engine.trace.state import Phase, State, advance, state_at
from engine.trace.times import Trace, itl, tpot, ttft

__all__ = [
    "KV",
    "Bytes",
    "Candidate",
    "Chose",
    "Decoded",
    "Event",
    "Facts",
    "Finished",
    "Forgot",
    "Layer",
    "Phase",
    "Prefilled",
    "Queued",
    "Reason",
    "Reused",
    "Started",
    "State",
    "Token",
    "Trace",
    "Wrote",
    "advance",
    "itl",
    "norm_byte",
    "norm_of",
    "state_at",
    "tpot",
    "ttft",
]
