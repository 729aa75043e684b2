"""Lines and their watchers: from anywhere, at any pace, nothing lost and nothing twice."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from service import feed as module
from service.feed import Feed
from tests.service.fakes import run_async


async def read(feed: Feed, start: int = 0) -> list[bytes]:
    async with aclosing(feed.follow(start)) as frames:
        return [line async for frame in frames for line in frame.split(b"\n")]


def test_what_accumulated_comes_in_one_frame() -> None:
    async def work() -> None:
        async with aclosing(Feed([b"a", b"b", b"c"], closed=True).follow(1)) as frames:
            assert [frame async for frame in frames] == [b"b\nc"]

    run_async(work())


def test_frames_are_bounded_and_a_long_line_is_sent_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_FRAME", 10)

    async def work() -> None:
        async with aclosing(Feed([b"aaaa", b"bbbb", b"c" * 50, b"d"], closed=True).follow()) as frames:
            assert [frame async for frame in frames] == [b"aaaa\nbbbb", b"c" * 50, b"d"]

    run_async(work())


def test_a_start_beyond_the_end_waits_for_that_line() -> None:
    async def work() -> None:
        feed = Feed([b"0"])
        reading = asyncio.create_task(read(feed, 2))
        await asyncio.sleep(0)
        for line in (b"1", b"2", b"3"):
            feed.append(line)
            await asyncio.sleep(0)
        feed.close()
        assert await reading == [b"2", b"3"]

    run_async(work())


def test_a_slow_watcher_holds_nobody_up() -> None:
    async def work() -> None:
        feed = Feed()
        async with aclosing(feed.follow()) as slow:
            feed.append(b"0")
            assert await anext(slow) == b"0"  # and then it takes its time
            quick = asyncio.create_task(read(feed))
            for number in range(1, 100):
                feed.append(b"%d" % number)
                await asyncio.sleep(0)
            feed.close()
            lines = [b"%d" % number for number in range(100)]
            assert await quick == lines
            assert [line async for frame in slow for line in frame.split(b"\n")] == lines[1:]
        assert feed.watchers == 0

    run_async(work())


def test_a_watcher_that_leaves_is_forgotten() -> None:
    async def work() -> None:
        feed = Feed()
        reading = asyncio.create_task(read(feed))
        await asyncio.sleep(0)
        assert feed.watchers == 1
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        assert feed.watchers == 0

    run_async(work())
