"""Stand-ins behind the service's own interfaces: an engine without a model, a store without a network, a clock."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from engine import weights
from engine.trace import Event
from engine.weights import catalogue
from service.api import create
from service.archive import Archive
from service.core import Service
from service.models import Models
from tests.engine.traces import FACTS, run

Message = tuple[Any, ...]
T = TypeVar("T")


def story(words: str = "Hi!", tokens: int = 3) -> list[Event]:
    """The events of a whole run as the engine sends them, a second after start was pressed."""
    events = run([0.5 + number for number in range(tokens)], words).events
    return [replace(event, at=event.at + 1) for event in events]


class FakeEngine:
    """Notes what it is told. Loads at once; answers questions from `answers`; otherwise the test speaks for it."""

    def __init__(self, deliver: Callable[[Message], None], loads: bool = True) -> None:
        self.deliver = deliver
        self.loads = loads
        self.sent: list[Message] = []
        self.answers: dict[str, Any] = {}
        self.killed = 0

    def start(self) -> None:
        self.deliver(("up",))

    def send(self, message: Message) -> None:
        self.sent.append(message)
        match message:
            case ("load", name) if self.loads:
                self.deliver(("status", "ready", {"model": name, "facts": replace(FACTS, model=name)}))
            case ("job", job, name, _) if name in self.answers:
                asyncio.get_running_loop().call_soon(self.deliver, ("result", job, self.answers[name]))

    def told(self, kind: str) -> list[Message]:
        return [message for message in self.sent if message[0] == kind]

    def kill(self) -> None:
        self.killed += 1

    async def close(self) -> None:
        pass


class FakeStore:
    """Knows `small` (here) and `big` (not here, with terms). `failure` is raised by the next fetch."""

    MODELS: ClassVar[dict[str, catalogue.Model]] = {
        "small": replace(catalogue.SMOLLM2, name="small", title="A small one"),
        "big": replace(catalogue.GEMMA3, name="big", title="The big one"),
    }

    def __init__(self, *here: str) -> None:
        self.here = {*here}
        self.failure: Exception | None = None
        self.go_on = threading.Event()
        self.go_on.set()

    def fetched(self, name: str) -> bool:
        return name in self.here

    def present(self, name: str) -> bool:
        return name in self.here

    def prepare_apart(self, name: str, progress: weights.Progress) -> None:
        progress(1.0, "convert")

    def fetch(self, name: str, progress: weights.Progress, accept_terms: bool) -> None:
        progress(0.5, "fetch")
        self.go_on.wait(120)
        if self.failure:
            raise self.failure
        self.here.add(name)


class Clock:
    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


class World:
    """A service with a fake engine and store, its files in one folder."""

    def __init__(self, folder: Path, store: FakeStore | None = None, default: str = "small") -> None:
        self.store = store or FakeStore("small")
        recordings = folder / "recordings"
        recordings.mkdir(exist_ok=True)
        self.service = Service(FakeEngine, Archive(folder / "runs", recordings), Models(self.store, default))
        assert isinstance(self.service.engine, FakeEngine)
        self.engine = self.service.engine

    def play(self, run_id: str, events: list[Event]) -> None:
        """The engine tells these events of a run."""
        self.service.call(self.service.deliver, ("events", run_id, events))


@contextmanager
def client_of(world: World, lan: bool = False) -> Iterator[TestClient]:
    """A browser at the service's routes."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with world.service.running():
            yield

    app = Starlette(routes=[Mount("/api", create(world.service, lan))], lifespan=lifespan)
    with TestClient(app, base_url="http://localhost:8501", raise_server_exceptions=False) as client:
        yield client


def start(client: TestClient, prompt: str = "Hi!", **more: Any) -> str:
    """A run that goes on alone: its id."""
    reply = client.post("/api/runs", json={"prompt": prompt, "keep": True, **more})
    assert reply.status_code == 201
    return str(reply.json()["id"])


def error(reply: Any) -> tuple[int, str]:
    """Status and code of a refusal."""
    return reply.status_code, reply.json()["error"]["code"]


def nothing_yet(folder: Path, path: str) -> None:
    """Below a run that is not there, and below one that still waits, nothing is told."""
    world = World(folder)
    world.engine.loads = False
    with client_of(world) as client:
        assert error(client.get(f"/api/runs/{'x' * 16}/{path}")) == (404, "unknown_run")
        assert error(client.get(f"/api/runs/{start(client)}/{path}")) == (409, "unfinished")


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine. Only a failure takes so long."""

    async def limited() -> T:
        return await asyncio.wait_for(work, 120)

    return asyncio.run(limited())
