"""A run in a few words, as lists and `GET /api/runs/{id}` show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from pydantic import ConfigDict, TypeAdapter

from engine.trace import Event, Trace
from engine.trace.file import Header, Lens

State = Literal["queued", "running", "finished"]
Looking = Literal["", "saving", "saved", "not_saved"]

TITLE_CHARACTERS = 60
LIST_CHARACTERS = 400
"""A list shows this much of a prompt and of an answer."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Times in seconds, `created` in ISO 8601, `lens` the layer and head worth looking through first (from 0).

    `code` names why a run ended in an error or was out of memory, as in its `finished` event; else it is empty.
    `looks`: whether its file tells where its words looked; empty for a run that is not over or wrote nothing. `saving`
    waits for an engine that is busy with others.
    `kept`: the engine still holds the run's tensors, so attention rows and maps are computed exactly.
    """

    id: str
    title: str
    prompt: str
    model: str
    created: str
    state: State
    reason: str
    recorded: bool
    lens: Lens | None
    kept: bool
    events: int
    ttft: float | None
    tpot: float | None
    output_text: str
    code: str = ""
    looks: Looking = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def short(self) -> Summary:
        """As in a list: without the whole of a long paper."""
        prompt, output = self.prompt[:LIST_CHARACTERS], self.output_text[:LIST_CHARACTERS]
        return replace(self, prompt=prompt, output_text=output)


Summary.__pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[attr-defined]
ADAPTER: TypeAdapter[Summary] = TypeAdapter(Summary)


def title_of(prompt: str) -> str:
    """The prompt's first line that says something, cut to fit a list."""
    line = next((line for line in prompt.splitlines() if line.strip()), "").strip()
    return line if len(line) <= TITLE_CHARACTERS else line[: TITLE_CHARACTERS - 1].rstrip() + "…"


def summarise(header: Header, events: Sequence[Event], prompt: str, model: str, state: State, kept: bool) -> Summary:
    """`prompt` and `model` are those asked for; what the trace says of them counts once the run has started."""
    trace = Trace(tuple(events))
    started, finished = trace.started, trace.finished
    return Summary(
        id=header.id,
        title=header.title,
        prompt=started.settings.prompt if started else prompt,
        model=started.facts.model if started else model,
        created=header.created,
        state=state,
        reason=finished.reason if finished else "",
        recorded=header.recorded,
        lens=header.lens,
        kept=kept,
        events=len(trace.events),
        ttft=trace.ttft,
        tpot=trace.tpot,
        output_text=trace.output_text,
        code=finished.code if finished else "",
    )
