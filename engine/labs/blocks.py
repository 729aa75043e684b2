"""Several real runs on one throwaway pool of blocks, driven in one piece and written down after every change: what
PagedAttention's bookkeeping does as runs arrive, grow, part, share a beginning and leave."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from engine.cache.paged import PagedCache, Pool
from engine.labs.base import give_way
from engine.measure import clock
from engine.run import Run, admit, prefix, step
from engine.settings import Fork, Keeping, Refusal, Settings
from engine.trace import Event

if TYPE_CHECKING:
    from engine.model import LanguageModel


@dataclass
class Desk:
    """The runs that are on the pool, by name, and the frames written so far.

    A frame: `{"what": arrives · grows · parts · copies · shares · ends · waits, "run", "tables": {run: block numbers},
    "lengths": {run: positions}, "holders": [by block], "free": blocks nobody holds}`; `copies` says in `"blocks"` which
    shared block was copied into which, `shares` and `parts` in `"of"` whose notes are taken, and `"taken"` how many
    positions.
    """

    model: LanguageModel
    pool: Pool
    runs: dict[str, Run] = field(default_factory=dict)
    frames: list[dict[str, Any]] = field(default_factory=list)
    tokens: dict[str, list[str]] = field(default_factory=dict)
    events: dict[str, list[Event]] = field(default_factory=dict)

    def arrive(self, name: str, settings: Settings, like: str = "") -> None:
        """A run whose paper is read, in one pass; with `like`, its beginning is that run's as far as they agree."""
        run = self._run(name, settings)
        if like:
            prefix.look_for(run, [self.runs[like]])
            if run.parent is not None:
                self._turn([run])
                self._write("shares", name, of=like, taken=_cache(run).length)
        while run.reading:
            self._turn([run])
        self._write("arrives", name)

    def part(self, name: str, parent: str, kept: int) -> None:
        """A fork: the parent's paper and its first `kept` words, then another word than it chose."""
        told = self.runs[parent].told[kept]
        other = next(one.id for one in told.candidates if one.id != told.token.id)
        fork = Fork(parent, kept, other)
        run = self._run(name, replace(self.runs[parent].settings, fork=fork), self.runs[parent])
        self._turn([run])
        self._write("parts", name, of=parent, taken=_cache(run).length)

    def write(self, turns: int) -> None:
        """All runs write a word together, `turns` times; a frame for each block that is taken or copied."""
        for _ in range(turns):
            writing = {name: run for name, run in self.runs.items() if run.writing}
            before = {name: list(_cache(run).table) for name, run in writing.items()}
            self._turn(list(writing.values()))
            changed = False
            for name, run in writing.items():
                changed |= self._changes(name, before[name], _cache(run).table)
            if not changed:
                self._write("grows", "")

    def leave(self, name: str) -> None:
        """A run is over: its blocks go back, but for those that others hold too."""
        run = self.runs.pop(name)
        self.tokens[name] = _texts(run)
        run.cache = run.tape = None
        self._write("ends", name)

    def told(self) -> dict[str, Any]:
        """`{"size", "count", "block_bytes", "frames", "tokens": {run: texts of its positions}}`."""
        self.tokens |= {name: _texts(run) for name, run in self.runs.items()}
        pool = self.pool
        return {
            "size": pool.size, "count": len(pool.holders), "block_bytes": pool.block_bytes, "frames": self.frames,
            "tokens": self.tokens,
        }  # fmt: skip

    def _run(self, name: str, settings: Settings, parent: Run | None = None) -> Run:
        run = admit(name, settings, self.model, clock.now(), parent=parent)
        run.pool = self.pool
        self.runs[name] = run
        self.events[name] = [run.started(False)]
        return run

    def _turn(self, runs: list[Run]) -> None:
        give_way()
        step(self.model, runs, lambda run, event: self.events[run.id].append(event), give_way)
        for run in runs:
            ended = self.events[run.id][-1]
            if ended.type == "finished" and ended.code:
                code = ended.code
                raise Refusal(code, **dict(ended.values))

    def _changes(self, name: str, before: list[int], after: list[int]) -> bool:
        copied = [(old, new) for old, new in zip(before, after, strict=False) if old != new]
        for pair in copied:
            self._write("copies", name, blocks=list(pair))
        if len(after) > len(before):
            self._write("grows", name)
        return bool(copied) or len(after) > len(before)

    def _write(self, what: str, name: str, **more: Any) -> None:
        caches = {run: _cache(one) for run, one in self.runs.items() if one.cache is not None}
        frame = {
            "what": what, "run": name, **more,
            "tables": {run: list(cache.table) for run, cache in caches.items()},
            "lengths": {run: cache.length for run, cache in caches.items()},
            "holders": list(self.pool.holders), "free": self.pool.free,
        }  # fmt: skip
        self.frames.append(frame)


def _cache(run: Run) -> PagedCache:
    assert isinstance(run.cache, PagedCache)
    return run.cache


def _texts(run: Run) -> list[str]:
    """Of the positions whose notes are kept: the paper's tokens and the words written, but the newest."""
    words = [told.token.text for told in run.told]
    return ([token.text for token in run.prompt.tokens] + words)[: _cache(run).length]


def scenario(model: LanguageModel, size: int, count: int, papers: dict[str, str], words: int) -> dict[str, Any]:
    """Run A reads and writes, B comes; C parts from A and copies the block both write in; A is over, what C holds too
    stays; D's paper begins as B's and shares its whole blocks; E takes what is free; all leave. See `Desk.told`.

    `papers`: of A, B, D and E. Raises `Refusal("no_blocks")` where `count` blocks of `size` are not enough.
    """
    desk = Desk(model, Pool(model.shape, count, size))

    def paper(name: str) -> Settings:
        return Settings(papers[name], mode="raw", max_new_tokens=words, keeping=Keeping(block=size))

    desk.frames.append(
        {"what": "waits", "run": "", "tables": {}, "lengths": {}, "holders": [0] * count, "free": desk.pool.free}
    )
    desk.arrive("A", paper("A"))
    desk.write(2)
    desk.arrive("B", paper("B"))
    desk.write(2)
    reader = desk.runs["A"]
    if reader.writing and len(reader.told) > 3:
        # Where the last block is not full, so that both go on in it and one must copy it.
        desk.part("C", "A", next((kept for kept in (3, 2) if (len(reader.ids) + kept) % size), 3))
        desk.write(3)
    del reader
    desk.leave("A")
    desk.arrive("D", paper("D"), "B")
    desk.write(2)
    desk.arrive("E", paper("E"))
    desk.write(3)
    for name in list(desk.runs):
        desk.leave(name)
    return desk.told()
