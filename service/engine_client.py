"""The engine process as seen from here: started, spoken to, and started again when it dies.

One thread per engine process reads what it says and hands it to the event loop, one writes what it is told; a
third watches over them. None of them does anything else, so a busy loop never holds the engine up nor the engine
the loop. The engine's address and key go through its standard input: arguments can be read by everybody.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from queue import SimpleQueue
from typing import Any

Message = tuple[Any, ...]

COMMAND = (sys.executable, "-m", "engine.process")
DELAYS = (0.2, 1.0, 3.0, 10.0)
"""Seconds before the engine is started again after the first, second, … quick death in a row; after the last: never."""
QUICK_SECONDS = 20.0
"""A death within this time of connecting is a quick one."""
CONNECT_SECONDS = 60.0
"""A process that has not connected by then is ended."""
QUIT_SECONDS = 3.0
"""An engine that was told to quit is ended when it is still there after this time."""

_ROOT = Path(__file__).parents[1]
_log = logging.getLogger(__name__)


class EngineClient:
    """Keeps one engine process alive. `deliver` is called in the event loop, with every message in order.

    Besides the engine's own messages it delivers `("up",)` when a process has connected and `("down", final)` when
    it is gone; `final` is true when it will not be started again.
    """

    def __init__(
        self,
        deliver: Callable[[Message], None],
        command: Sequence[str] = COMMAND,
        device: str = "",
        dtype: str = "",
        delays: Sequence[float] = DELAYS,
    ) -> None:
        self._deliver = deliver
        self._command = list(command)
        self._options = {"device": device, "dtype": dtype}
        self._delays = delays
        self._closing = threading.Event()
        self._inbox: deque[Message] = deque()
        self._scheduled = False
        self._outbox: SimpleQueue[Message | None] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._supervise, name="engine", daemon=True)

    def start(self) -> None:
        """Start the process. Call it in the event loop that messages shall be delivered in."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def send(self, message: Message) -> None:
        """Tell the engine something. Never waits; dropped while there is no engine."""
        outbox = self._outbox
        if outbox is not None:
            outbox.put(message)

    def kill(self) -> None:
        """End a process that no longer listens; it is then started again."""
        if self._process is not None:
            self._process.kill()

    async def close(self) -> None:
        """End the process and the threads."""
        self._closing.set()
        if self._outbox is None:
            self.kill()
        self.send(("quit",))
        if self._thread.ident is not None:
            await asyncio.to_thread(self._thread.join, QUIT_SECONDS)
            self.kill()
            await asyncio.to_thread(self._thread.join)

    def _supervise(self) -> None:
        deaths = 0
        while not self._closing.is_set():
            try:
                lived = self._live()
            except Exception:  # noqa: BLE001 - whatever goes wrong with one process, the next one is tried
                _log.exception("the engine process could not be started")
                lived = 0.0
            if self._closing.is_set():
                return
            deaths = deaths + 1 if lived < QUICK_SECONDS else 1
            final = deaths > len(self._delays)
            self._post(("down", final))
            if final:
                return
            self._closing.wait(self._delays[deaths - 1])

    def _live(self) -> float:
        """One process's life, from its start to its end; the seconds it was connected."""
        key = secrets.token_bytes(32)
        with Listener(("127.0.0.1", 0), authkey=key) as listener:
            assert isinstance(listener.address, tuple)
            greeting = {"address": listener.address, "key": key.hex(), **self._options}
            self._process = process = self._spawn(json.dumps(greeting))
            connection = _accept(listener, process)
        try:
            return self._talk(connection) if connection is not None else 0.0
        finally:
            with suppress(subprocess.TimeoutExpired):
                process.wait(QUIT_SECONDS)
            process.kill()
            status = process.wait()
            if not self._closing.is_set():
                _log.warning("the engine process ended (exit status %s)", status)

    def _spawn(self, greeting: str) -> subprocess.Popen[bytes]:
        # A session of its own: Ctrl+C reaches this process only, which then tells the engine to quit.
        flags = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
        process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, cwd=_ROOT, start_new_session=True, creationflags=flags
        )
        assert process.stdin is not None
        with suppress(OSError):  # it died before it read: seen in a moment
            process.stdin.write(greeting.encode() + b"\n")
            process.stdin.close()
        return process

    def _talk(self, connection: Connection) -> float:
        """Read until the connection ends."""
        begin = time.monotonic()
        outbox: SimpleQueue[Message | None] = SimpleQueue()
        writer = threading.Thread(target=_write, args=(connection, outbox), name="engine-writer", daemon=True)
        writer.start()
        self._outbox = outbox
        if self._closing.is_set():  # closed while it was connecting
            outbox.put(("quit",))
        self._post(("up",))
        try:
            while True:
                self._post(connection.recv())
        except (EOFError, OSError):
            pass
        finally:
            self._outbox = None
            outbox.put(None)
            connection.close()
        return time.monotonic() - begin

    def _post(self, message: Message) -> None:
        """Hand a message to the event loop; many at once wake it once."""
        self._inbox.append(message)
        if not self._scheduled:
            self._scheduled = True
            with suppress(RuntimeError):  # the loop is closed: nobody listens any more
                self._loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        self._scheduled = False  # before looking: what comes from here on wakes the loop again
        while self._inbox:
            message = self._inbox.popleft()
            try:
                self._deliver(message)
            except Exception:  # noqa: BLE001 - one bad message must not hold up the others
                _log.exception("a message from the engine was not understood: %.200r", message[:2])


def _accept(listener: Listener, process: subprocess.Popen[bytes]) -> Connection | None:
    """The process's connection; None when it ended, or had to be ended, before it connected."""
    connected = threading.Event()

    def release() -> None:
        """`accept` cannot be given a time limit: a knock on our own door ends it when the process is gone."""
        with suppress(subprocess.TimeoutExpired):
            process.wait(CONNECT_SECONDS)
        if not connected.is_set():
            process.kill()
            process.wait()
            with suppress(OSError):
                socket.create_connection(listener.address, 1).close()

    threading.Thread(target=release, name="engine-door", daemon=True).start()
    while process.poll() is None:
        try:
            connection = listener.accept()
        except (AuthenticationError, EOFError, OSError):
            continue
        connected.set()
        return connection
    return None


def _write(connection: Connection, outbox: SimpleQueue[Message | None]) -> None:
    """Send what is in the outbox until None. A full pipe makes this thread wait, and nobody else."""
    with suppress(OSError):
        while (message := outbox.get()) is not None:
            connection.send(message)
