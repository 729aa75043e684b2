"""The engine process: started, heard, buried and started again. With real processes that load nothing."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from engine.settings import Refusal, Settings
from engine.trace import Finished
from service.archive import Archive
from service.core import Service
from service.engine_client import EngineClient
from service.jobs import Jobs
from service.models import Models
from tests.service.fakes import FakeStore, Message, run_async

pytestmark = pytest.mark.slow

TINY = (sys.executable, str(Path(__file__).parent / "tiny_engine.py"))


def tiny(*arguments: str, delays: Sequence[float] = (0.0, 0.0)) -> Callable[[Callable[[Message], None]], EngineClient]:
    return lambda deliver: EngineClient(deliver, (*TINY, *arguments), delays=delays)


def service_of(folder: Path, *arguments: str) -> Service:
    return Service(tiny(*arguments), Archive(folder / "runs", folder), Models(FakeStore("small"), "small"))


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks processes up in /proc")


async def until(condition: Callable[[], Any]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


def test_a_run_goes_through_a_real_process(tmp_path: Path) -> None:
    async def work() -> None:
        service = service_of(tmp_path)
        async with service.running():
            await until(lambda: service.health()["engine"] == "ready")
            run = service.submit(Settings("Hi!"), keep=True)
            lines = [line async for frame in service.follow(run, 0) for line in frame.split(b"\n")]
            assert lines[-1].endswith(b'"type":"finished"}')
            assert (await service.summary(run)).output_text == "aaa"

    run_async(work())


def test_its_death_ends_its_runs_with_a_sentence_and_the_next_run_works(tmp_path: Path) -> None:
    async def work() -> None:
        service = service_of(tmp_path)
        async with service.running():
            dies = service.submit(Settings("die"), keep=True)
            lives = service.submit(Settings("Hi!"), keep=True)
            await until(lambda: dies not in service.runs.live)
            last = (await service.archive.get(dies)).file.trace.events[-1]
            assert isinstance(last, Finished) and (last.reason, last.code) == ("error", "engine_died")
            await until(lambda: service.health()["engine"] == "ready")
            again = service.submit(Settings("Hi!"), keep=True)
            await until(lambda: not service.runs.live)
            assert (await service.summary(again)).output_text == "aaa"
            assert (await service.summary(lives)).reason in ("length", "error")  # it was in the same process, or waited

    run_async(work())


@pytest.mark.parametrize("argument", ["quits", "dies"])
def test_after_many_quick_deaths_it_is_left_alone(tmp_path: Path, argument: str) -> None:
    async def work() -> None:
        service = service_of(tmp_path, argument)
        async with service.running():
            run = service.submit(Settings("Hi!"), keep=True)
            await until(lambda: service.health()["engine"] == "failed")
            assert service.health()["error"].code == "engine_failed"
            assert (await service.summary(run)).reason == "error"
            with pytest.raises(Refusal, match="engine_failed"):
                service.submit(Settings("Hi!"))

    run_async(work())


def test_a_program_that_cannot_be_started_is_a_failed_engine(tmp_path: Path) -> None:
    async def work() -> None:
        messages: list[Message] = []
        client = EngineClient(messages.append, (str(tmp_path / "nothing"),), delays=())
        client.start()
        await until(lambda: messages)
        await client.close()
        assert messages == [("down", True)]

    run_async(work())


def test_questions_to_an_engine_that_dies_fail(tmp_path: Path) -> None:
    async def work() -> None:
        service = service_of(tmp_path)
        async with service.running():
            await until(lambda: service.health()["engine"] == "ready")
            asking = asyncio.create_task(service.jobs.ask("never answered", {}))
            await asyncio.sleep(0)
            service.engine.kill()
            with pytest.raises(Refusal, match="engine_died"):
                await asking

    run_async(work())


@needs_proc
def test_the_key_is_in_no_argument_and_the_process_ends_with_the_service(tmp_path: Path) -> None:
    async def work() -> int:
        service = service_of(tmp_path)
        async with service.running():
            await until(lambda: service.health()["engine"] == "ready")
            client = service.engine
            assert isinstance(client, EngineClient) and client._process is not None
            assert client._process.args == list(TINY)
            return int(await service.jobs.ask("pid", {}))

    assert not alive(run_async(work()))


@needs_proc
def test_the_process_ends_when_the_service_is_killed() -> None:
    script = (
        "import asyncio, sys\n"
        "from service.engine_client import EngineClient\n"
        "async def main():\n"
        "    def deliver(message):\n"
        "        client.send(('job', '1', 'pid', {})) if message[0] == 'up' else print(message[2], flush=True)\n"
        f"    client = EngineClient(deliver, {TINY!r})\n"
        "    client.start()\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen(
        (sys.executable, "-c", script), stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    ) as service:
        assert service.stdout is not None
        engine = int(service.stdout.readline())
        service.kill()
    deadline = time.monotonic() + 60
    while alive(engine) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(engine)


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be buried does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_an_answer_that_takes_too_long_is_cancelled() -> None:
    async def work() -> None:
        sent: list[Message] = []
        jobs = Jobs(sent.append)
        with pytest.raises(Refusal, match="engine_busy"):
            await jobs.ask("attention", {"row": 1}, seconds=0.01)
        assert sent == [("job", "1", "attention", {"row": 1}), ("cancel", "1")]
        jobs.result("1", b"late")

    run_async(work())


def test_questions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        jobs = Jobs(lambda message: None)
        asking = [asyncio.create_task(jobs.ask("x", {}, 5)) for _ in range(64)]
        await asyncio.sleep(0)
        with pytest.raises(Refusal, match="too_many_jobs"):
            await jobs.ask("x", {})
        jobs.fail_all(Refusal("engine_died"))
        assert all(isinstance(answer, Refusal) for answer in await asyncio.gather(*asking, return_exceptions=True))

    run_async(work())
