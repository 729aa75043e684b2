"""The library's own continuous batching beside ours, in a process of its own: its manager computes in a second thread,
which would slow every later step of the engine, and changes the attention of the model it is given.

`python -m engine.labs.reference` reads what to sit from standard input and writes what came of it, both one JSON value.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.labs.base import give_way
from engine.settings import Refusal
from engine.trace import Facts

PAGE = 16
"""Tokens of a page of its cache."""
BATCH = 512
"""Most tokens in one of its passes."""
PATIENCE = 120.0
"""Seconds for all of it, loading included."""


def library(
    folder: Path, facts: Facts, prompts: Sequence[Sequence[int]], limits: Sequence[int], ends: Sequence[int]
) -> dict[str, Any]:
    """All prompts given to transformers' `ContinuousBatchingManager` at once, greedily, as `facts` says the model runs
    here: `{"seconds": until the last word, "ids": of each answer, "ttft", "tpot": of each, "version"}`; `{"refused":
    its own reason, "version"}` where it does not do it. Two words of each come first, to warm up.

    Raises `Refusal("job_failed")` where its process gives no answer, and what `give_way` raises."""
    asked = {
        "folder": str(folder), "dtype": facts.dtype, "threads": facts.threads, "device": facts.device,
        "prompts": [list(ids) for ids in prompts], "limits": list(limits), "ends": sorted(ends),
    }  # fmt: skip
    command = [sys.executable, "-m", "engine.labs.reference"]
    root = Path(__file__).parent.parent.parent
    with subprocess.Popen(
        command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as child:
        try:
            return _heard(child, json.dumps(asked))
        finally:
            child.kill()


def _heard(child: subprocess.Popen[str], asked: str) -> dict[str, Any]:
    assert child.stdin is not None and child.stdout is not None
    child.stdin.write(asked)
    child.stdin.close()
    end = time.monotonic() + PATIENCE
    while child.poll() is None:  # its answer is shorter than a pipe holds, so it never waits for us
        give_way()
        if time.monotonic() > end:
            raise Refusal("job_failed", why=f"no answer within {PATIENCE:.0f} s")
        time.sleep(0.05)
    try:
        told: dict[str, Any] = json.loads(child.stdout.read().strip().splitlines()[-1])
    except (ValueError, IndexError):
        raise Refusal("job_failed", why=f"its process ended with {child.returncode}") from None
    return told


def sat(asked: dict[str, Any]) -> dict[str, Any]:
    """In the process of its own; see `library`."""
    import torch
    import transformers
    from transformers import AutoModelForCausalLM, GenerationConfig
    from transformers.generation.configuration_utils import ContinuousBatchingConfig

    torch.set_num_threads(asked["threads"])
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(
            asked["folder"], dtype=getattr(torch, asked["dtype"]), attn_implementation="sdpa",
            trust_remote_code=False, local_files_only=True,
        )  # fmt: skip
        room = max(len(ids) + limit for ids, limit in zip(asked["prompts"], asked["limits"], strict=True))
        blocks = (room // PAGE + 2) * len(asked["prompts"])
        model = model.to(asked["device"]).eval()
        manager = model.init_continuous_batching(
            generation_config=GenerationConfig(do_sample=False, eos_token_id=asked["ends"] or -1, pad_token_id=0),
            continuous_batching_config=ContinuousBatchingConfig(
                page_size=PAGE, num_blocks=blocks, max_batch_tokens=BATCH, allow_block_sharing=False
            ),
        )
        manager.start()
        try:
            _once(manager, {**asked, "limits": [2] * len(asked["prompts"])})
            told = _once(manager, asked)
        finally:
            manager.stop(block=True)
    except Exception as error:  # noqa: BLE001 - whatever keeps the library from it is its own reason
        told = {"refused": f"{type(error).__name__}: {error}"[:300]}
    return {**told, "version": transformers.__version__}


def _once(manager: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """Raises `RuntimeError` with the library's reason where a request failed."""
    begin = time.perf_counter()
    names = [
        manager.add_request(ids, max_new_tokens=limit, record_timestamps=True, eos_token_id=asked["ends"] or -1)
        for ids, limit in zip(asked["prompts"], asked["limits"], strict=True)
    ]
    results: dict[str, Any] = {}
    while len(results) < len(names):
        result = manager.get_result(timeout=1)
        if result is not None and result.is_finished():
            if result.error:
                raise RuntimeError(result.error)
            results[result.request_id] = result
        elif result is None and not manager.is_running():
            raise RuntimeError("its generation loop ended")
    answers = [results[name] for name in names]
    stamps = [list(answer.timestamps) for answer in answers]
    return {
        "seconds": max(each[-1] for each in stamps) - begin,
        "ids": [list(answer.generated_tokens) for answer in answers],
        "ttft": [each[0] - begin for each in stamps],
        "tpot": [(each[-1] - each[0]) / (len(each) - 1) if len(each) > 1 else None for each in stamps],
    }


if __name__ == "__main__":
    print(json.dumps(sat(json.load(sys.stdin))))
