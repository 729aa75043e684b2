"""Questions to the engine beside runs (attention rows, maps, looks) as awaitables, with a time limit and cancel."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any

from engine.settings import Refusal

MAX_WAITING = 64
"""Questions the engine has not answered yet, over all people."""

SECONDS = 20.0
"""Patience for one answer. A busy engine answers between two steps; only loading a model takes longer."""


class Jobs:
    """Belongs to the event loop. `send` hands a message to the engine process."""

    def __init__(self, send: Callable[[tuple[Any, ...]], None]) -> None:
        self._send = send
        self._numbers = count(1)
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        self._patient: set[str] = set()

    async def ask(self, name: str, arguments: dict[str, Any], seconds: float = SECONDS) -> Any:
        """The engine's answer. Raises its `Refusal`, or `engine_busy` when it takes too long."""
        if len(self._waiting) - len(self._patient) >= MAX_WAITING:
            raise Refusal("too_many_jobs", bound=MAX_WAITING)
        job, answer = self._put(name, arguments)
        try:
            async with asyncio.timeout(seconds):
                return await answer
        except TimeoutError:
            raise Refusal("engine_busy", seconds=int(seconds)) from None
        finally:
            if self._waiting.pop(job, None) is not None:  # given up, not answered
                self._send(("cancel", job))

    def begin(self, name: str, arguments: dict[str, Any]) -> asyncio.Future[Any]:
        """A question that is sent now and waited for as long as the engine lives; it counts in no bound. The answer
        raises the engine's `Refusal`, or `engine_died`."""
        job, answer = self._put(name, arguments)
        self._patient.add(job)
        answer.add_done_callback(lambda _: self._patient.discard(job))
        return answer

    def _put(self, name: str, arguments: dict[str, Any]) -> tuple[str, asyncio.Future[Any]]:
        job = str(next(self._numbers))
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[job] = answer
        self._send(("job", job, name, arguments))
        return job, answer

    def result(self, job: str, value: Any) -> None:
        """The engine answered. Answers nobody waits for any more are dropped."""
        answer = self._waiting.pop(job, None)
        if answer is not None and not answer.done():
            answer.set_result(value)

    def failed(self, job: str, refusal: Refusal) -> None:
        """The engine refused."""
        answer = self._waiting.pop(job, None)
        if answer is not None and not answer.done():
            answer.set_exception(refusal)

    def fail_all(self, refusal: Refusal) -> None:
        """The engine is gone."""
        for job in list(self._waiting):
            self.failed(job, refusal)
