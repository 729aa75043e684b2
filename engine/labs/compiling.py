"""`torch.compile` (Ansel et al. 2024) on one layer, in a process of its own.

Compiling takes a compiler, many seconds and a few hundred megabytes of modules, and cannot be broken off from within.
So a child process does it: it can be ended at any moment, when it takes too long or when somebody's run waits, and what
it writes lies in a folder that is gone afterwards. All ways are timed in the child, in turns.

`python -m engine.labs.compiling FOLDER` is the child: it reads `block.pt` there and writes `told.json`.
"""

from __future__ import annotations

import copy
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from engine.labs.base import give_way
from engine.labs.traffic import BOOKKEEPING, Block, block_of, compared
from engine.model import fuse
from engine.settings import Refusal

if TYPE_CHECKING:
    from engine.model import LanguageModel

SECONDS = 100.0
"""Bound on one number of rows. Ten to thirty seconds are usual."""
LOOK = 0.2
"""Seconds between two looks at whether somebody waits."""


def compiler() -> str:
    """What inductor, torch's backend, would call to compile for a processor."""
    usual = {"darwin": "clang++", "win32": "cl"}.get(sys.platform, "g++")
    return os.environ.get("CXX", usual)


def lacking(device: torch.device) -> str:
    """The code of the sentence that says why nothing can be compiled for a device here; empty where it can."""
    if device.type == "cuda":
        return "" if importlib.util.find_spec("triton") else "no_triton"
    if device.type != "cpu":
        return "not_compiled_here"
    if shutil.which(compiler()) is None:
        return "no_compiler"
    return "" if (Path(sysconfig.get_path("include")) / "Python.h").exists() else "no_python_headers"


def compiled(model: LanguageModel, rows: int) -> dict[str, Any]:
    """The middle layer's norm and MLP compiled for so many rows: as `engine.labs.traffic.compared` with the way
    `compiled`, and `{"compiler", "compile": seconds it took}`.

    Raises `Refusal`: those of `lacking`, `compile_failed`, `compile_too_long`, and whatever `give_way` raises.
    """
    device = model.shape.device
    if lacking(device):
        raise Refusal(lacking(device), compiler=compiler(), device=device.type)
    block, hidden = block_of(model, rows)
    with tempfile.TemporaryDirectory(prefix="open-book-exam-", ignore_cleanup_errors=True) as folder:
        asked = {"block": plain(block), "hidden": hidden, "threads": torch.get_num_threads()}
        torch.save(asked, Path(folder) / "block.pt")
        _wait(folder)
        told: dict[str, Any] = json.loads((Path(folder) / "told.json").read_text("utf-8"))
        return told


def _wait(folder: str) -> None:
    """Run the child to its end, giving way meanwhile. However it goes, no process is left."""
    environment = {
        **os.environ, "TORCHINDUCTOR_CACHE_DIR": str(Path(folder) / "cache"), "TMPDIR": folder,
        "TORCHINDUCTOR_COMPILE_THREADS": "1", "TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE": "1",
        "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",  # worth it for many kernels, not for two
    }  # fmt: skip
    errors = Path(folder) / "errors.txt"
    with errors.open("wb") as told:
        child = subprocess.Popen(
            [sys.executable, "-m", "engine.labs.compiling", folder], cwd=Path(__file__).parents[2], env=environment,
            stdin=subprocess.PIPE, stdout=told, stderr=told, start_new_session=True,
        )  # fmt: skip
    try:
        end = time.monotonic() + SECONDS
        while (code := child.poll()) is None:
            if time.monotonic() > end:
                raise Refusal("compile_too_long", seconds=int(SECONDS))
            give_way()
            time.sleep(LOOK)
    finally:
        _end(child)
    if code:
        raise Refusal("compile_failed", compiler=compiler(), why=_last_line(errors))


def _end(child: subprocess.Popen[bytes]) -> None:
    """The child and the compiler it may have called."""
    if child.poll() is None:
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()
    child.wait()
    assert child.stdin is not None
    child.stdin.close()


def _last_line(file: Path) -> str:
    lines = [line.strip() for line in file.read_text("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""


def plain(block: Block) -> Block:
    """The block as the library makes it, with weights of its own: nothing of `engine.model.fuse`, nothing shared."""
    norm = block.norm._own[0] if isinstance(block.norm, fuse.Norm) else block.norm
    mlp = copy.copy(block.mlp)
    mlp._modules = {name: _linear(one) if isinstance(one, nn.Linear) else one for name, one in mlp._modules.items()}
    return copy.deepcopy(Block(norm, mlp))


def _linear(own: nn.Linear) -> nn.Linear:
    made = nn.Linear(own.in_features, own.out_features, own.bias is not None, device="meta")
    made.weight = nn.Parameter(own.weight.detach().clone(), requires_grad=False)
    made.bias = None if own.bias is None else nn.Parameter(own.bias.detach().clone(), requires_grad=False)
    return made


def arranged(block: Block, hidden: Tensor) -> Block:
    """A copy of a plain block as the engine arranges it."""
    made = copy.deepcopy(block)
    with torch.no_grad(), fuse.watched(made) as siblings:
        made(hidden)
    fuse.arrange(made, siblings)
    return made


def main(folder: str) -> None:
    """The child: ends when nobody holds its input any more."""
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(1)), daemon=True).start()
    asked = torch.load(Path(folder) / "block.pt", weights_only=False)  # our own parent wrote it just now
    torch.set_num_threads(asked["threads"])
    block: Block = asked["block"].eval()
    hidden: Tensor = asked["hidden"]
    own = arranged(block, hidden)
    kernels = _watch_inductor()
    made = torch.compile(block, dynamic=False, fullgraph=True)
    begin = time.perf_counter()
    with torch.inference_mode():
        made(hidden)
    seconds = time.perf_counter() - begin
    told = compared(own, hidden, {"compiled": lambda: made(hidden)})
    told["ways"]["compiled"]["steps"] = list(kernels) or None
    told |= {"compiler": compiler() if hidden.device.type == "cpu" else "triton", "compile": seconds}
    (Path(folder) / "told.json").write_text(json.dumps(told), "utf-8")


def _watch_inductor() -> list[dict[str, Any]]:
    """A list that fills with the kernels of whatever is compiled next, in the shape of `engine.labs.traffic.steps_of`,
    with `"ops"`: the operations that became one. Bytes are inductor's own account of what each kernel reads and writes.

    It is read from inside the compiler, so it may be missing with another version of torch; then the list stays empty.
    """
    from torch._inductor.graph import GraphLowering

    kernels: list[dict[str, Any]] = []
    own = GraphLowering.codegen

    def codegen(graph: Any) -> Any:
        result = own(graph)
        try:
            kernels.extend(_kernels(graph))
        except (AttributeError, TypeError, KeyError, ValueError):
            kernels.clear()
        return result

    setattr(GraphLowering, "codegen", codegen)  # noqa: B010 - its own type is more than is needed here
    return kernels


def _kernels(graph: Any) -> Iterator[dict[str, Any]]:
    """One for each call of torch's own products, one for all nodes between two of them: these are compiled together."""
    for outside, nodes in groupby(graph.scheduler.nodes, lambda node: node.is_extern()):
        for group in ([node] for node in nodes) if outside else (list(nodes),):
            yield _kernel(graph, group)


def _kernel(graph: Any, nodes: list[Any]) -> dict[str, Any]:
    parts = [part for node in nodes for part in getattr(node, "snodes", None) or [node]]
    origins = sorted({origin for part in parts for origin in part.node.get_origins() if origin.op == "call_function"})
    names = [str(getattr(origin.target, "_opname", origin.target)) for origin in origins]
    ops = [name for name in names if name not in BOOKKEEPING]
    if nodes[0].is_extern():  # its origins name all that led there; the last is the product itself
        ops = ops[-1:]
    accesses = [
        [node.get_read_write_buffer_accesses(include_reads=reads, include_writes=not reads) for node in nodes]
        for reads in (True, False)
    ]
    reads = [(name in _weights(graph), count) for one in accesses[0] for name, count in one.items()]
    return {
        "op": ops[-1] if ops else nodes[0].get_name(), "ops": ops, "weight": [],
        "weights": int(sum(count for weight, count in reads if weight)),
        "reads": int(sum(count for weight, count in reads if not weight)),
        "writes": int(sum(sum(one.values()) for one in accesses[1])), "shape": [],
    }  # fmt: skip


def _weights(graph: Any) -> set[str]:
    """The graph's inputs that are a vector or a matrix; the hidden states have a batch's dimension more."""
    return {name for name, given in graph.graph_inputs.items() if len(given.get_size()) < 3}


if __name__ == "__main__":
    main(sys.argv[1])
