"""Which models there are, and how far each one is: absent, being fetched, on disk, being loaded, loaded, failed.

Fetching runs in a thread (it waits for the network and the disk); loading is the engine's. Belongs to the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from engine.settings import Refusal

State = Literal["absent", "fetching", "present", "loading", "loaded", "failed"]

_log = logging.getLogger(__name__)


class Known(Protocol):
    """What is told of a model, see `engine.weights.Model`."""

    name: str
    title: str
    bytes: int
    licence: str
    terms: str
    languages: tuple[str, ...]


class Store(Protocol):
    """Where weights come from: the part of `engine.weights` that is used here."""

    def known(self) -> Iterable[Known]: ...
    def present(self, name: str) -> bool: ...
    def fetch(self, name: str, progress: Callable[[float], None], accept_terms: bool) -> None: ...


@dataclass(slots=True)
class Status:
    """How far a model is. `progress` (0 to 1) while it is fetched or loaded; `error` when that failed."""

    state: State
    progress: float | None = None
    error: Refusal | None = None


class Models:
    """`default` is the model that is used when none is named; it may be a folder. `load` asks the engine for one."""

    def __init__(self, store: Store, default: str, load: Callable[[str], None] = lambda name: None) -> None:
        self._store = store
        self.default = default
        self.load = load
        self.connected = False
        self._known = {model.name: model for model in store.known()}
        self._status = {name: self._on_disk(name) for name in {*self._known, default}}
        self._wanted = [default]
        self._fetching: set[asyncio.Task[None]] = set()

    def _on_disk(self, name: str) -> Status:
        return Status("present" if name not in self._known or self._store.present(name) else "absent")

    def status(self, name: str) -> Status:
        """Raises `Refusal("unknown_model")`."""
        if name not in self._status:
            raise Refusal("unknown_model", model=name)
        return self._status[name]

    def start(self) -> None:
        """Get the default model, from the network if it must be."""
        if self.status(self.default).state == "absent" and not self._known[self.default].terms:
            self.fetch(self.default, accept_terms=True)

    async def close(self) -> None:
        """Fetches are given up; what is on disk of them is used when they start again."""
        for task in self._fetching:
            task.cancel()
        await asyncio.gather(*self._fetching, return_exceptions=True)

    def want(self, name: str) -> None:
        """Have a model loaded. Raises `Refusal`: `unknown_model`, `model_fetching`, `model_absent`, or why it failed."""
        status = self.status(name)
        if status.error is not None:
            raise status.error
        if status.state in ("absent", "fetching"):
            raise Refusal(f"model_{status.state}", model=self._title(name))
        if name not in self._wanted:
            self._wanted.append(name)
        self._load(name)

    def _load(self, name: str) -> None:
        if self.connected and self._status[name].state == "present":
            self._status[name] = Status("loading", 0.0)
            self.load(name)

    def fetch(self, name: str, accept_terms: bool) -> None:
        """Begin to fetch a model. Raises `Refusal`: `unknown_model`, or `terms_not_accepted`."""
        if name not in self._known:
            raise Refusal("unknown_model", model=name)
        if self._known[name].terms and not accept_terms:
            raise Refusal("terms_not_accepted", model=self._title(name))
        if self._status[name].state not in ("absent", "failed"):
            return
        self._status[name] = Status("fetching", 0.0)
        task = asyncio.get_running_loop().create_task(self._fetch(name, accept_terms))
        self._fetching.add(task)
        task.add_done_callback(self._fetching.discard)

    async def _fetch(self, name: str, accept_terms: bool) -> None:
        status = self._status[name]

        def progress(fraction: float) -> None:
            status.progress = fraction  # one assignment: safe from any thread

        try:
            await asyncio.to_thread(self._store.fetch, name, progress, accept_terms)
        except Refusal as refusal:
            self._status[name] = Status("failed", error=refusal)
        except Exception as error:  # noqa: BLE001 - whatever the network or the disk comes up with is told as a sentence
            _log.exception("fetching %s failed", name)
            why = f"{type(error).__name__}: {error}"[:300]
            self._status[name] = Status("failed", error=Refusal("fetch_failed", model=self._title(name), why=why))
        else:
            self._status[name] = Status("present")
            if name in self._wanted:
                self._load(name)

    # What the engine says

    def engine_up(self) -> None:
        self.connected = True
        for name in self._wanted:
            self._load(name)

    def engine_down(self) -> None:
        self.connected = False
        for name, status in self._status.items():
            if status.state in ("loading", "loaded"):
                self._status[name] = Status("present")

    def loading(self, name: str, progress: float | None) -> None:
        self._status[name] = Status("loading", progress)

    def loaded(self, name: str) -> None:
        self._status[name] = Status("loaded")

    def refused(self, name: str, refusal: Refusal) -> None:
        self._status[name] = Status("failed", error=refusal)

    # What people ask for

    def listed(self) -> list[dict[str, Any]]:
        """See `docs/api.md`; `error` is the `Refusal` itself, the sentence is made where its reader is known."""
        return [self._row(name) for name in {self.default: 0, **dict.fromkeys(self._known, 0)}]

    def _row(self, name: str) -> dict[str, Any]:
        known, status = self._known.get(name), self._status[name]
        return {
            "name": name,
            "title": self._title(name),
            "present": status.state in ("present", "loading", "loaded"),
            "default": name == self.default,
            "bytes": known.bytes if known else 0,
            "licence": known.licence if known else "",
            "terms": known.terms if known else "",
            "languages": list(known.languages) if known else [],
            "state": status.state,
            "progress": status.progress,
            "error": status.error,
        }

    def _title(self, name: str) -> str:
        return self._known[name].title if name in self._known else name
