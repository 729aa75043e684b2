"""A run's events as lines of JSON: it grows at one end, and any number of watchers follow it at their own pace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable

MAX_FRAME = 256 * 1024
"""Bytes after which a frame is sent: a browser reads a long recording in pieces and never freezes on one."""


class Feed:
    """Lines without their newline. Belongs to the event loop; a slow watcher only keeps a number of its own."""

    def __init__(self, lines: Iterable[bytes] = (), closed: bool = False) -> None:
        self.lines = list(lines)
        self.closed = closed
        self._watchers: set[asyncio.Event] = set()

    @property
    def watchers(self) -> int:
        return len(self._watchers)

    def append(self, line: bytes) -> None:
        self.lines.append(line)
        self._wake()

    def close(self) -> None:
        """Nothing more will come: followers send the rest and end."""
        self.closed = True
        self._wake()

    def _wake(self) -> None:
        for changed in self._watchers:
            changed.set()

    async def follow(self, start: int = 0) -> AsyncGenerator[bytes, None]:
        """Frames of one or more lines from line `start` on, as they come, until the feed is closed."""
        changed = asyncio.Event()
        self._watchers.add(changed)
        try:
            while True:
                changed.clear()
                while start < len(self.lines):
                    frame, start = self._frame(start)
                    yield frame
                if self.closed:
                    return
                await changed.wait()
        finally:
            self._watchers.discard(changed)

    def _frame(self, start: int) -> tuple[bytes, int]:
        """The lines from `start` that fit a frame (one at least), and the number of the line after them."""
        size, stop = 0, start
        while stop < len(self.lines) and (size == 0 or size + len(self.lines[stop]) < MAX_FRAME):
            size += len(self.lines[stop]) + 1
            stop += 1
        return b"\n".join(self.lines[start:stop]), stop
