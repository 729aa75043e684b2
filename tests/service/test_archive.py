"""Finished runs on disk: they survive, they are bounded, their owner is private, and damage is told, not raised."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from engine.settings import Refusal, Settings
from engine.trace import Trace
from engine.trace import file as tracefile
from engine.trace.file import Header, TraceFile
from service import archive as module
from service.archive import Archive, Saved, saved_of
from service.feed import Feed
from tests.service.fakes import run_async, story

WHEN = "2026-12-01T09:00:00+00:00"


def run_id(number: int) -> str:
    return f"run{number:013d}"


def saved(number: int = 0, created: str = WHEN) -> Saved:
    return saved_of(
        TraceFile(Header(run_id(number), "Hi!", created), Trace(tuple(story()))), Feed((), True), Settings("Hi!")
    )


async def put(folder: Path, *runs: Saved, owner: str = "anna") -> Archive:
    archive = Archive(folder, folder / "none")
    await archive.start()
    for run in runs:
        archive.hold(run, owner)
        await archive.save(run)
    return archive


def test_a_run_survives_a_restart(tmp_path: Path) -> None:
    async def work() -> None:
        (await put(tmp_path, saved())).close()
        archive = await put(tmp_path)
        found = await archive.get(run_id(0))
        assert found.file.trace.events == tuple(story())
        assert len(found.feed.lines) == len(story()) and found.feed.closed
        assert [summary.id for summary in archive.owned("anna")] == [run_id(0)]
        assert archive.owned("berta") == []
        archive.close()

    run_async(work())


def test_the_owner_is_not_in_the_trace(tmp_path: Path) -> None:
    async def work() -> None:
        archive = await put(tmp_path, saved(), owner="anna-secret")
        data = await archive.file_of(run_id(0))
        assert tracefile.read(data).header.id == run_id(0)
        assert b"anna-secret" not in data
        assert json.loads((tmp_path / f"{run_id(0)}.json").read_text())["owner"] == "anna-secret"
        archive.close()

    run_async(work())


def test_a_run_whose_note_is_damaged_can_still_be_read(tmp_path: Path) -> None:
    async def work() -> None:
        (await put(tmp_path, saved())).close()
        (tmp_path / f"{run_id(0)}.json").write_text("{")
        archive = await put(tmp_path)
        assert archive.owned("anna") == []
        assert (await archive.get(run_id(0))).summary.output_text == "aaa"
        archive.close()

    run_async(work())


def test_the_oldest_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_RUNS", 2)

    async def work() -> None:
        archive = await put(tmp_path, saved(0), saved(1))
        for number in range(2):
            os.utime(tmp_path / f"{run_id(number)}.trace", (number, number))
        archive.hold(saved(2), "anna")
        await archive.save(saved(2))
        assert sorted(path.name for path in tmp_path.iterdir()) == [
            f"{run_id(number)}.{kind}" for number in (1, 2) for kind in ("json", "trace")
        ]
        assert {summary.id for summary in archive.owned("anna")} == {run_id(1), run_id(2)}
        with pytest.raises(Refusal, match="unknown_run"):
            await archive.get(run_id(0))
        archive.close()

    run_async(work())


def test_bytes_on_disk_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 1)

    async def work() -> None:
        archive = await put(tmp_path, saved(0))
        assert list(tmp_path.iterdir()) == []
        archive.close()

    run_async(work())


def test_memory_holds_the_last_ones_and_disk_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_OPEN", 1)

    async def work() -> None:
        archive = await put(tmp_path, saved(0), saved(1))
        assert list(archive._open) == [run_id(1)]
        await archive.get(run_id(0))
        assert list(archive._open) == [run_id(0)]
        archive.close()

    run_async(work())


def test_a_full_disk_loses_no_run_in_memory(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "runs").write_text("no folder can be made here")

    async def work() -> None:
        archive = await put(tmp_path / "runs", saved())
        assert "could not be saved" in caplog.text
        assert (await archive.get(run_id(0))).summary.output_text == "aaa"
        assert tracefile.read(await archive.file_of(run_id(0))).trace.events == tuple(story())
        archive.close()

    run_async(work())


@pytest.mark.parametrize(
    "name", ["", "..", "../../../x.trace", "a/b", "nul", "x" * 17, "x" * 15 + ".", "run%2e", "é" * 16]
)
def test_nothing_but_an_id_becomes_a_path(tmp_path: Path, name: str) -> None:
    async def work() -> None:
        archive = await put(tmp_path / "runs")
        with pytest.raises(Refusal, match="unknown_run"):
            await archive.get(name)
        archive.close()

    run_async(work())


def test_recordings_have_plain_names(tmp_path: Path) -> None:
    recordings = tmp_path / "recordings"
    recordings.mkdir()
    tracefile.write(recordings / "open-book.trace", replace(saved().file, header=Header("x", "Open book", WHEN)))
    (recordings / "damaged.trace").write_bytes(b"PK")

    async def work() -> None:
        archive = Archive(tmp_path / "runs", recordings)
        await archive.start()
        assert [(one.id, one.title, one.recorded) for one in archive.recordings()] == [("open-book", "Open book", True)]
        assert tracefile.read(await archive.file_of("open-book")).header.title == "Open book"
        archive.close()

    run_async(work())


def test_a_run_is_there_before_it_is_on_disk_however_many_are_over_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_OPEN", 1)

    async def work() -> None:
        archive = await put(tmp_path)
        for number in range(3):
            archive.hold(saved(number), "anna")
        assert [(await archive.get(run_id(number))).summary.id for number in range(3)] == [run_id(n) for n in range(3)]
        await archive.save(await archive.get(run_id(0)))
        await archive.save(await archive.get(run_id(1)))
        assert (await archive.get(run_id(0))).summary.output_text == "aaa"
        archive.close()

    run_async(work())
