"""What the two stages cost here, really done: decode in batches, and where the seconds of one pass go.

Jobs as in `engine.jobs`. They work on throwaway copies of a run's notes: the run itself, and everybody else's, stay as
they are. Each is one short piece of work; whoever wants all batch sizes asks one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import TYPE_CHECKING, Any

from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from engine.cache import RunCache
from engine.measure import clock
from engine.measure.quiet import Elsewhere, free_bytes, undisturbed
from engine.model import LanguageModel
from engine.model.tap import Pass
from engine.run import CHUNK, Run
from engine.settings import Refusal

if TYPE_CHECKING:
    from engine.jobs.desk import Desk

BATCHES = (1, 2, 4, 8, 16, 32)
SECONDS = 0.6
"""Patience for one batch size, after one step that warms up."""
LEAST, MOST = 3, 16
"""Decode steps of one batch size."""
LONGEST = 4096
"""Tokens of a prefill whose parts are timed: three passes over more would take a laptop's engine away for too long."""
PARTS = ("projections", "attention", "mlp", "norms", "logits")


def decode_batch(desk: Desk, run: str, batch: int) -> dict[str, Any]:
    """Decode steps of `batch` copies of a run together, each on notes of its own: what one step takes.

    `{"batch", "prompt", "contexts": positions each copy sees in each step, "seconds": of each step's forward pass,
    "best", "middle", "active", "busy"}` (see `engine.jobs.machine.Peak`). Raises `Refusal`: `not_kept`, `unfinished`
    while the prompt is read, `keeping_not_timed`, `no_batch`, `batch_too_large`, and those of `Desk.give_way`.
    """
    if batch not in BATCHES:
        raise Refusal("no_batch", least=BATCHES[0], most=BATCHES[-1])
    source = _read(desk, run)
    elsewhere = Elsewhere()
    with undisturbed():
        seconds, contexts = batch_steps(source, batch, desk.give_way)
    return {
        "batch": batch, "prompt": len(source.ids), "contexts": contexts, "seconds": seconds,
        "best": min(seconds), "middle": median(seconds), "active": len(desk.active), "busy": elsewhere.cores,
    }  # fmt: skip


def batch_steps(source: Run, batch: int, give_way: Callable[[], None]) -> tuple[list[float], list[int]]:
    """Seconds of decode steps of `batch` copies of a run that has read its prompt, and the positions each copy sees in
    them; a first step warms up. Raises `Refusal("batch_too_large")`, and what `give_way` raises."""
    caches = _copies(source, batch, LEAST + MOST)
    tokens = [[source.chosen[0]]] * batch
    seconds: list[float] = []
    contexts: list[int] = []
    room = caches[0].capacity - 1
    _pass(source, caches, tokens)
    while caches[0].length < room and (len(seconds) < LEAST or (len(seconds) < MOST and sum(seconds) < SECONDS)):
        give_way()
        seconds.append(_pass(source, caches, tokens))
        contexts.append(caches[0].length)
    return seconds, contexts


def parts(desk: Desk, run: str, stage: str) -> dict[str, Any]:
    """Where the seconds of one pass go: a run's prefill or its first decode step, done once more on a copy.

    `{"stage", "prompt", "tokens": that go through the model, "context": positions seen, "seconds": of the pass as it
    is, "timed": of the pass whose parts were timed, "parts": {"projections", "attention", "mlp", "norms", "logits",
    "rest"} in seconds, summing to "timed", "calls": operations handed to torch, "active", "busy"}`.

    `attention` is the attention module without its projections: rotation, notes written, scores, softmax, values.
    `rest` is what no part holds: embedding, sums, masks and Python between the parts. On CUDA and MPS each part is
    waited for, so "timed" is longer than "seconds" there. Raises `Refusal`: `no_stage`, `not_kept`, `unfinished`,
    `too_long_to_time`, `no_parts`, `others_at_work` for a long paper's prefill while others write, and those of
    `Desk.give_way`, which is asked between layers.
    """
    if stage not in ("prefill", "decode"):
        raise Refusal("no_stage")
    source = _read(desk, run)
    if stage == "prefill" and len(source.ids) > LONGEST:
        raise Refusal("too_long_to_time", tokens=len(source.ids), bound=LONGEST)
    if stage == "prefill" and len(source.ids) > CHUNK and desk.active:
        raise Refusal("others_at_work")
    model, elsewhere = source.model, Elsewhere()
    once = _prefill_once(source, desk.give_way) if stage == "prefill" else _decode_once(source)
    with _Count() as counted:
        first = once()
    repeats = LEAST if first < SECONDS else 1
    with undisturbed():
        plain = min(once() for _ in range(repeats))
        with _timed_parts(model) as hooked:
            timed = min((_parts_of(once, hooked) for _ in range(repeats)), key=lambda one: one[0])
    return {
        "stage": stage, "prompt": len(source.ids), "tokens": len(source.ids) if stage == "prefill" else 1,
        "context": len(source.ids) + (stage == "decode"), "seconds": plain, "timed": timed[0], "parts": timed[1],
        "calls": counted.count, "active": len(desk.active), "busy": elsewhere.cores,
    }  # fmt: skip


def _read(desk: Desk, run: str) -> Run:
    """A run whose prompt is read and whose notes are kept, in the plain way."""
    found = desk.run(run)
    if found.cache is None:
        raise Refusal("not_kept")
    if not found.chosen:
        raise Refusal("unfinished")
    if not found.settings.keeping.plain:  # its copies would be kept otherwise than it is
        raise Refusal("keeping_not_timed")
    return found


def _copies(source: Run, batch: int, more: int) -> list[RunCache]:
    """`batch` caches with the notes of the run's prompt and room for `more` positions. Raises `batch_too_large`."""
    shape, length = source.model.shape, len(source.ids)
    capacity = min(length + more, source.model.facts.context)
    size = batch * capacity * source.model.facts.kv_bytes_per_token
    free = free_bytes(shape.device)
    if free is not None and size > free // 2:
        raise Refusal("batch_too_large", batch=batch, needed=size // 2**20, free=free // 2**20)
    assert source.cache is not None
    caches = [RunCache(shape, capacity) for _ in range(batch)]
    for cache in caches:
        cache.take(source.cache, length)
    return caches


def _pass(
    source: Run, caches: list[RunCache], ids: list[list[int]], give_way: Callable[[], None] | None = None
) -> float:
    """One forward pass as `engine.run` does it, choosing aside: its seconds, without those of giving way."""
    on_layer = (lambda index, seconds: give_way()) if give_way else None
    one = Pass(caches, len(ids[0]), on_layer, ways=[source.way] * len(caches))
    source.model.forward(ids, one)
    one.marks.mark()
    seconds = sum(one.marks.seconds())
    for cache in caches:
        cache.length += len(ids[0])
    return seconds


def _prefill_once(source: Run, give_way: Callable[[], None]) -> Callable[[], float]:
    cache = RunCache(source.model.shape, len(source.ids))

    def once() -> float:
        cache.length = 0
        return _pass(source, [cache], [source.ids], give_way if len(source.ids) > CHUNK else None)

    return once


def _decode_once(source: Run) -> Callable[[], float]:
    (cache,) = _copies(source, 1, 1)

    def once() -> float:
        cache.length = len(source.ids)
        return _pass(source, [cache], [[source.chosen[0]]])

    return once


class Parts:
    """Seconds of each part of a pass, by pairs of hooks around its modules. A part inside another is taken off it."""

    def __init__(self, model: LanguageModel) -> None:
        self._device = model.shape.device
        self._open: list[list[float]] = []
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self.handles: list[Any] = []
        for module, part in parts_of(model).items():
            self.handles += [
                module.register_forward_pre_hook(self._enter),
                module.register_forward_hook(self._leave(part)),
            ]

    def _now(self) -> float:
        clock.synchronise(self._device)
        return clock.now()

    def _enter(self, *_: Any) -> None:
        self._open.append([self._now(), 0.0])

    def _leave(self, part: str) -> Callable[..., None]:
        def leave(*_: Any) -> None:
            begin, inside = self._open.pop()
            whole = self._now() - begin
            self.seconds[part] += whole - inside
            if self._open:
                self._open[-1][1] += whole

        return leave


@contextmanager
def _timed_parts(model: LanguageModel) -> Iterator[Parts]:
    """The hooks are gone afterwards: they hang on the one model that everybody shares."""
    parts = Parts(model)
    try:
        yield parts
    finally:
        for handle in parts.handles:
            handle.remove()


def _parts_of(once: Callable[[], float], parts: Parts) -> tuple[float, dict[str, float]]:
    """One pass: its seconds, and those of its parts with the rest."""
    parts.seconds = dict.fromkeys(PARTS, 0.0)
    seconds = once()
    return seconds, {**parts.seconds, "rest": seconds - sum(parts.seconds.values())}


def parts_of(model: LanguageModel) -> dict[nn.Module, str]:
    """Which modules are which part, by what the library calls them. Raises `Refusal("no_parts")` where not every layer
    has an attention module that can be told."""
    network = model.network
    head = network.get_output_embeddings()
    found: dict[nn.Module, str] = {head: "logits"}
    outer = {name: part for name, module in network.named_modules() if (part := _block(module))}
    for name, module in network.named_modules():
        inside = next((part for other, part in outer.items() if name.startswith(f"{other}.")), "")
        if name in outer and not inside:
            found[module] = outer[name]
        elif "norm" in type(module).__name__.lower():
            found[module] = "norms"
        elif module is not head and inside != "mlp" and _is_product(module):
            found[module] = "projections" if inside else "mlp"
    if list(found.values()).count("attention") != model.shape.layers:
        raise Refusal("no_parts", model=model.facts.model)
    return found


def _block(module: nn.Module) -> str:
    name = type(module).__name__.lower()
    kinds = {"attention": "attention", "mlp": "mlp", "moe": "mlp"}
    return next((part for kind, part in kinds.items() if kind in name), "") if any(module.children()) else ""


def _is_product(module: nn.Module) -> bool:
    """A layer that multiplies by a matrix: the library's two kinds of linear."""
    weight = getattr(module, "weight", None)
    return not isinstance(module, nn.Embedding) and weight is not None and weight.dim() == 2


class _Count(TorchDispatchMode):
    """Counts what is handed to torch: each is a kernel, or a view, and a little work of Python's."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))
