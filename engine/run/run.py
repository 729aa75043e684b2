"""A run: one person's exam, everything of it, and nothing of anybody else's. What is done with it is in its neighbours
(`engine.run.turn` drives them all)."""

from __future__ import annotations

from collections.abc import Callable

from engine.cache import RunCache, Tape, keeping
from engine.cache.lens import Lens
from engine.cache.paged import Pool
from engine.measure import clock
from engine.model import LanguageModel
from engine.model.tap import Way
from engine.model.text import StreamDecoder
from engine.run import sampling, schedule
from engine.run.drafting import Drafter
from engine.settings import Refusal, Settings, check
from engine.trace import Chose, Event, Queued, Reason, Started

Emit = Callable[["Run", Event], None]


class Run:
    """One person's exam. Everything of it is in here; the model knows nothing of it.

    `engine.run.admit` makes one, with all that has to be true of it. By itself it raises `Refusal`: those of
    `engine.settings.check`, `empty_prompt`, `too_many_tokens`, `no_chat_template`, `no_layer`, `no_head`.
    """

    def __init__(
        self,
        run_id: str,
        settings: Settings,
        model: LanguageModel,
        pressed: float,
        now: Callable[[], float] = clock.now,
    ) -> None:
        self.id = run_id
        self.settings = settings
        self.model = model
        self._pressed = pressed
        self._now = now
        check(settings)
        begin = now()
        self.prompt = model.text.prompt(settings)
        self.tokenise_seconds = now() - begin
        self.ids = [token.id for token in self.prompt.tokens]
        context = model.facts.context
        if not self.ids:
            raise Refusal("empty_prompt")
        if len(self.ids) >= context:
            raise Refusal("too_many_tokens", tokens=len(self.ids), bound=context - 1)
        self.limit = min(settings.max_new_tokens, context - len(self.ids))
        self.way = Way(_heads_off(settings, model), settings.kernel == "math", settings.grouped, settings.fused)
        self.chosen: list[int] = []
        self.told: list[Chose] = []
        """What was told of each chosen token; a fork goes on from there."""
        self.sampler = sampling.Sampler(settings)
        self.decoder = StreamDecoder(model.text, settings.stop)
        self.cache: RunCache | None = None
        self.tape: Tape | None = None
        self.finished = False
        self.stop_reason: Reason | None = None
        self.pool: Pool | None = None
        """Where blocks come from, for notes that are kept in blocks."""
        self.parent: Run | None = None
        """The run whose notes are taken over at the beginning: a fork's, or the one `engine.run.prefix` found."""
        self.taken = 0
        self.drafter: Drafter | None = None
        """The smaller model that guesses ahead, where one was asked for."""
        self.begun = False
        """Whether `engine.run.schedule` has let it in; until then it waits."""
        self.opening: bool | None = None
        """For a run whose beginning, and wait before it, `step` is to tell: whether it is the model's first. None for
        one whose `Started` is told by who drives it."""
        self._ahead = 0
        self.read_at = 0.0
        """When a run without notes last read everything, by the clock that all runs share."""

    @property
    def at(self) -> float:
        """Seconds since the person pressed start."""
        return self._now() - self._pressed

    @property
    def reading(self) -> bool:
        return not self.finished and not self.chosen

    @property
    def writing(self) -> bool:
        return not self.finished and bool(self.chosen)

    @property
    def full(self) -> bool:
        """Whether the notes have reached the bound that was set for them, so that the next pass has no room."""
        return self.cache is not None and self.cache.capacity < len(self.ids) + len(self.chosen)

    @property
    def lens(self) -> Lens:
        """Raises `Refusal("not_kept")` when the run's tensors are gone."""
        if self.cache is None or self.tape is None or not self.cache.length:
            raise Refusal("not_kept")
        return Lens(self.cache, self.tape, self.model.scaling)

    def due(self) -> Reason | None:
        """Why this run should end now, if it should."""
        if self.stop_reason is None and self.at > self.settings.timeout:
            self.stop_reason = "timeout"
        return self.stop_reason

    @property
    def place(self) -> schedule.Place:
        return schedule.Place(self.settings.batching, self.begun, bool(self.chosen))

    def open(self, emit: Emit) -> None:
        """Its paper is read from now on."""
        if self.opening is not None:
            emit(self, self.started(self.opening))
            self.opening = None

    def wait(self, ahead: int, emit: Emit) -> None:
        """Its paper is not read yet; `ahead` runs are before it."""
        if self.opening is not None and ahead != self._ahead:
            self._ahead = ahead
            emit(self, Queued(self.at, ahead))

    def started(self, cold: bool) -> Started:
        prompt = self.prompt
        return Started(
            self.at, self.model.facts, self.settings, prompt.text, prompt.tokens, prompt.own_start, prompt.own_stop,
            self.tokenise_seconds, cold, prompt.flagged,
        )  # fmt: skip

    def allocate(self) -> tuple[RunCache, Tape]:
        """The cache and the tape, on first use. Raises out-of-memory errors."""
        if self.cache is None or self.tape is None:
            capacity, memory = len(self.ids) + self.limit, self.settings.memory if self.settings.notes else 0
            shape, kept = self.model.shape, self.settings.keeping
            capacity = keeping.fitting(shape, kept, memory, capacity) if memory else capacity
            self.cache = keeping.make(shape, capacity, kept, self.pool)
            self.tape = Tape(self.model.shape, self.limit)
        return self.cache, self.tape


def _heads_off(settings: Settings, model: LanguageModel) -> dict[int, list[int]]:
    """The heads that are off, by layer. Raises `Refusal`: `no_layer`, `no_head`."""
    off: dict[int, list[int]] = {}
    for layer, head in sorted(set(settings.heads_off)):
        if not 0 <= layer < model.shape.layers:
            raise Refusal("no_layer", layer=layer + 1, layers=model.shape.layers)
        if not 0 <= head < model.shape.heads:
            raise Refusal("no_head", head=head + 1, heads=model.shape.heads)
        off.setdefault(layer, []).append(head)
    return off
