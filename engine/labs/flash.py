"""FlashAttention (Dao et al. 2022): torch's fused attention against the formula as it stands, on this machine.

One layer's attention of the loaded model's shapes: time, and the most memory at once, at growing lengths. The engine's
own run with either kernel: time to the first word. And the tiles of `engine.labs.tiles` against the whole matrix.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.labs.base import Lab, Results, give_way, spread
from engine.labs.papers import example
from engine.settings import Settings

if TYPE_CHECKING:
    from torch import Tensor

    from engine.model import LanguageModel

LENGTHS = (256, 512, 1024, 2048, 4096, 8192)
"""Positions of one layer's attention."""
RUNS = (256, 512, 1024, 2048)
"""Prompt tokens of the engine's own runs."""
PROOF = (192, 50)
"""Prompt tokens whose real Q, K and V go through the tiles, and a tile's side that does not divide them."""
SIDES = ("fast", "math")
LONG = 2.0
"""Seconds of both kernels from which on they are done once."""


class Flash(Lab):
    name = "flash"
    stage = "prefill"

    def plan(self, model: LanguageModel) -> list[dict[str, Any]]:
        most = model.facts.context
        return [
            *({"piece": f"kernel/{n}", "kind": "kernel", "n": n} for n in LENGTHS if n <= most),
            *({"piece": f"run/{n}", "kind": "run", "n": n} for n in RUNS if n < most),
            {"piece": "tiles", "kind": "tiles", "n": min(PROOF[0], most // 2), "size": PROOF[1]},
        ]

    def measure(self, model: LanguageModel, piece: Mapping[str, Any]) -> dict[str, Any]:
        """`kernel`: `{"n", "matrix", "fast", "math"}`, the last two `{"seconds": spread or None, "bytes", "source"}`.
        `run`: `{"n", "fast", "math": spreads of TTFT, "same": the first word}`. `tiles`: `{"n", "size", "heads",
        "layer", "tiles": largest difference to the formula, "fast": the kernel's}`."""
        if piece["kind"] == "kernel":
            return _kernels(model, piece["n"])
        return _runs(model, piece["n"]) if piece["kind"] == "run" else _tiles(model, piece["n"], piece["size"])

    def figures(self, results: Results) -> dict[str, Any]:
        """`{"kernel": [{"n", "fast", "math", "time": how many times as fast, "memory": how many times less}], "run":
        [{"n", "fast", "math", "time", "same"}], "tiles", "gained"}`."""
        kernel = [
            {**one, "time": _ratio(*(one[side]["seconds"] for side in SIDES)),
             "memory": one["math"]["bytes"] / max(1, one["fast"]["bytes"])}
            for one in _of(results, "kernel/")
        ]  # fmt: skip
        runs = [{**one, "time": _ratio(one["fast"], one["math"])} for one in _of(results, "run/")]
        full = [one for one in kernel if one["time"] is not None]
        gained = {name: full[-1][name] for name in ("n", "time", "memory")} if full and full[-1]["n"] >= 1024 else None
        return {"kernel": kernel, "run": runs, "tiles": results.get("tiles"), "gained": gained}

    def runs(self) -> dict[str, Settings]:
        paper = example("long-paper")
        return {"math": replace(paper, kernel="math"), "fast": paper}


LAB = Flash()


def _of(results: Results, kind: str) -> list[dict[str, Any]]:
    found = [dict(one) for name, one in results.items() if name.startswith(kind)]
    return sorted(found, key=lambda one: one["n"])


def _ratio(fast: Mapping[str, Any] | None, math: Mapping[str, Any] | None) -> float | None:
    return None if fast is None or math is None else math["middle"] / fast["middle"]


def matrix_bytes(model: LanguageModel, n: int) -> int:
    """Bytes of one layer's attention weights, all heads, in the model's own dtype."""
    return n * n * model.shape.heads * model.shape.dtype.itemsize


def _kernels(model: LanguageModel, n: int) -> dict[str, Any]:
    """One layer's attention over n positions: random Q, K and V of the model's shapes."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention

    from engine.labs.footprint import peak_bytes
    from engine.labs.timing import alternate
    from engine.measure import clock
    from engine.measure.quiet import free_bytes

    shape = model.shape
    chance = torch.Generator().manual_seed(n)

    def some(heads: int) -> Tensor:
        return torch.randn((1, heads, n, shape.head_size), generator=chance).to(shape.device, shape.dtype)

    query, key, value = some(shape.heads), some(shape.kv_heads), some(shape.kv_heads)

    def fast() -> Tensor:
        return scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)

    def math() -> Tensor:
        with sdpa_kernel(SDPBackend.MATH):
            return scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)

    free = free_bytes(shape.device)
    # The formula makes the scores, their softmax and a mask; five of them leave room for whatever else is needed.
    fits = free is None or 5 * n * n * shape.heads * 4 < free
    sides = {"fast": fast, **({"math": math} if fits else {})}
    with torch.inference_mode():
        peaks: dict[str, int | None] = {}
        taken: dict[str, list[float]] = {}
        for name, side in sides.items():
            give_way()
            begin = clock.now()
            peaks[name] = peak_bytes(side, shape.device)
            taken[name] = [clock.now() - begin]
        # Where one call takes seconds, noting its few allocations is nothing beside it: it need not be done again.
        if sum(map(sum, taken.values())) < LONG:
            taken = alternate(sides, shape.device, seconds=3)
    result = query.nbytes
    told: dict[str, Any] = {"n": n, "matrix": matrix_bytes(model, n)}
    for name in SIDES:
        peak = peaks.get(name)
        # At least what must be there: nothing beside the result, or the matrix of weights.
        least = matrix_bytes(model, n) if name == "math" else 0
        told[name] = {
            "seconds": spread(taken[name]) if name in taken else None,
            "bytes": max(0, peak - result) if peak is not None else least,
            "source": "measured" if peak is not None else "computed",
        }
    return told


def _runs(model: LanguageModel, n: int) -> dict[str, Any]:
    """The engine's own prefill of a prompt of n tokens, with either kernel."""
    from engine.labs.papers import of_length
    from engine.labs.timing import alternate, sit

    paper = of_length(model, n)
    words: dict[str, set[int]] = {side: set() for side in SIDES}

    def read(side: Any) -> float:
        _, trace = sit(model, replace(paper, kernel=side))
        words[side].add(trace.chosen[0].token.id)
        assert trace.ttft is not None
        return trace.ttft

    taken = alternate({side: lambda side=side: read(side) for side in SIDES}, model.shape.device, seconds=4)  # type: ignore[misc]
    same = words["fast"] == words["math"] and len(words["fast"]) == 1
    return {"n": n, "same": same, **{side: spread(taken[side]) for side in SIDES}}


def _tiles(model: LanguageModel, n: int, size: int) -> dict[str, Any]:
    """Real Q, K and V of every head of the middle layer, through the tiles and through the formula."""
    from engine.labs.heads import Head
    from engine.labs.papers import of_length
    from engine.labs.tiles import tiled
    from engine.labs.timing import sit

    run, _ = sit(model, of_length(model, n))
    tiles = fast = 0.0
    heads = model.shape.heads
    for number in range(heads):
        head = Head.of(run, model.shape.layers // 2, number)
        by_tiles = tiled(head.query, head.key, head.value, head.scale, size, head.window)
        tiles = max(tiles, float((by_tiles - head.naive).abs().max()))
        fast = max(fast, float((head.fast - head.naive).abs().max()))
    return {"n": n, "size": size, "heads": heads, "layer": model.shape.layers // 2, "tiles": tiles, "fast": fast}
