"""Which models there are, and how far each one is: absent, being fetched, on disk, being loaded, loaded, failed.

Fetching runs in a thread (it waits for the network and the disk); loading is the engine's. Belongs to the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from engine.settings import Refusal
from engine.weights import Progress
from engine.weights.catalogue import Model

State = Literal["absent", "fetching", "present", "loading", "loaded", "failed"]

_log = logging.getLogger(__name__)


class Store(Protocol):
    """Where weights come from: the part of `engine.weights` that is used here."""

    @property
    def MODELS(self) -> Mapping[str, Model]: ...

    def fetched(self, name: str) -> bool: ...
    def present(self, name: str) -> bool: ...
    def fetch(self, name: str, progress: Progress, accept_terms: bool) -> None: ...
    def prepare_apart(self, name: str, progress: Progress) -> None: ...


@dataclass(slots=True)
class Status:
    """How far a model is. `progress` (0 to 1) while it is fetched or loaded, and what is being done (`fetch`, `check`,
    `import`, `convert`, …); `error` when that failed."""

    state: State
    progress: float | None = None
    doing: str = ""
    error: Refusal | None = None


class Models:
    """`default` is the model that is used when none is named; it may be a folder. `load` asks the engine for one.

    Others may only ask for models that are known: a name is never taken for a path or an address.
    """

    def __init__(self, store: Store, default: str, load: Callable[[str], None] = lambda name: None) -> None:
        self._store = store
        self.default = default
        self.load = load
        self.connected = False
        self._known = store.MODELS
        self._status = {name: self._on_disk(name) for name in (default, *self._known)}
        self._wanted = [default]

    def _on_disk(self, name: str) -> Status:
        return Status("present" if name not in self._known or self._store.fetched(name) else "absent")

    def status(self, name: str) -> Status:
        """Raises `Refusal("unknown_model")`."""
        if name not in self._status:
            raise Refusal("unknown_model", model=name, known=", ".join(self._known))
        return self._status[name]

    def start(self) -> None:
        """Get the default model, from the network if it must be."""
        if self.status(self.default).state == "absent" and not self._known[self.default].terms:
            self.fetch(self.default, accept_terms=True)

    def want(self, name: str) -> None:
        """Have a model loaded. Raises `Refusal`: `unknown_model`, `model_fetching`, `model_absent`, or why not."""
        status = self.status(name)
        if status.error is not None:
            raise status.error
        if status.state in ("absent", "fetching"):
            raise Refusal(f"model_{status.state}", model=self.title(name))
        if name not in self._wanted:
            self._wanted.append(name)
        self._load(name)

    def prepared(self, name: str) -> bool:
        """Whether a model only has to be loaded: what was fetched takes a minute to be prepared, once."""
        return name not in self._known or self._store.present(name)

    def _load(self, name: str) -> None:
        if self._status[name].state == "present" and not self.prepared(name):
            self._get(name, accept_terms=True)  # it was fetched before, so its terms were accepted
        elif self.connected and self._status[name].state == "present":
            self._status[name] = Status("loading", 0.0)
            self.load(name)

    def fetch(self, name: str, accept_terms: bool) -> None:
        """Begin to fetch a model. Raises `Refusal`: `unknown_model`, or `terms_not_accepted`."""
        if name not in self._known:
            raise Refusal("unknown_model", model=name, known=", ".join(self._known))
        if self._known[name].terms and not accept_terms:
            raise Refusal("terms_not_accepted", model=self.title(name), terms=self._known[name].terms)
        if self._status[name].state not in ("absent", "failed"):
            return
        self._get(name, accept_terms)

    def _get(self, name: str, accept_terms: bool) -> None:
        """Fetch and prepare, as far as that was not done."""
        self._status[name] = status = Status("fetching", 0.0, "fetch")
        loop = asyncio.get_running_loop()

        def progress(fraction: float, what: str) -> None:
            status.progress, status.doing = fraction, what

        def work() -> None:
            error = self._fetch(name, progress, accept_terms)
            with suppress(RuntimeError):  # the loop is closed: the service has ended meanwhile
                loop.call_soon_threadsafe(self._fetched, name, error)

        # A daemon: whoever ends the program does not wait for the network. What is here is used the next time.
        threading.Thread(target=work, name=f"fetch {name}", daemon=True).start()

    def _fetch(self, name: str, progress: Progress, accept_terms: bool) -> Refusal | None:
        """In a thread of its own: fetch, and say what went wrong, if something did."""
        try:
            self._store.fetch(name, progress, accept_terms)
            self._store.prepare_apart(name, progress)
        except Refusal as refusal:
            return refusal
        except Exception as error:  # noqa: BLE001 - whatever network or disk come up with is told as a sentence
            _log.exception("fetching %s failed", name)
            return Refusal("fetch_failed", model=self.title(name), why=f"{type(error).__name__}: {error}"[:300])
        return None

    def _fetched(self, name: str, error: Refusal | None) -> None:
        self._status[name] = Status("failed", error=error) if error else Status("present")
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

    def loading(self, name: str, progress: float | None, doing: str) -> None:
        self._status[name] = Status("loading", progress, doing)

    def loaded(self, name: str) -> None:
        self._status[name] = Status("loaded")

    def refused(self, name: str, refusal: Refusal) -> None:
        self._status[name] = Status("failed", error=refusal)

    # What people ask for

    def listed(self) -> list[dict[str, Any]]:
        """See `docs/api.md`; `error` is the `Refusal` itself, the sentence is made where its reader is known."""
        return [self._row(name) for name in self._status]

    def _row(self, name: str) -> dict[str, Any]:
        known, status = self._known.get(name), self._status[name]
        return {
            "name": name,
            "title": self.title(name),
            "present": status.state in ("present", "loading", "loaded"),
            "default": name == self.default,
            "bytes": known.bytes if known else 0,
            "licence": known.licence if known else "",
            "terms": known.terms if known else "",
            "languages": list(known.languages) if known else [],
            "chat": known.chat if known else None,
            "parameters": known.parameters if known else None,
            "bits": known.bits if known else None,
            "state": status.state,
            "progress": status.progress,
            "doing": status.doing,
            "error": status.error,
        }

    def title(self, name: str) -> str:
        """What people call it."""
        return self._known[name].title if name in self._known else name
