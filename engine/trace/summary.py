"""What a run came to, in a dozen plain values: what `run` and `replay` print. Standard library only."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from engine.trace import Reason, Trace, state_at


@dataclass(frozen=True, slots=True)
class Summary:
    """Times in seconds, sizes in bytes; None where there is nothing to say yet (or, for `tpot_s`, ever)."""

    prompt_tokens: int
    output_ids: tuple[int, ...]
    output_text: str
    ttft_s: float | None
    tpot_s: float | None
    itl_s: tuple[float, ...]
    kv_bytes: int
    finish_reason: Reason | None
    device: str | None
    dtype: str | None
    model: str | None

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False, indent=2)


def summary(trace: Trace) -> Summary:
    """The summary of a trace, complete or so far; `kv_bytes` is what the notes took at its end."""
    started, finished = trace.started, trace.finished
    facts = started.facts if started else None
    return Summary(
        prompt_tokens=len(started.prompt) if started else 0,
        output_ids=trace.output_ids,
        output_text=trace.output_text,
        ttft_s=trace.ttft,
        tpot_s=trace.tpot,
        itl_s=trace.itl,
        kv_bytes=state_at(trace.events).kv_bytes,
        finish_reason=finished.reason if finished else None,
        device=facts.device if facts else None,
        dtype=facts.dtype if facts else None,
        model=facts.model if facts else None,
    )
