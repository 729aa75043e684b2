"""One head's real Q, K and V of a run's prompt, with what the formula and the fast kernel make of them.

One is kept in `assets/stations/recorded/head.json`, for a page whose run's tensors are gone or that has no model;
`python -m engine record` makes it together with the recording of the same exam, and checks it.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from engine.labs.tiles import naive
from engine.run import Run
from engine.settings import Refusal

if TYPE_CHECKING:
    from engine.jobs.desk import Desk
    from engine.model import LanguageModel
    from engine.recordings.exams import Recording

RECORDED = Path(__file__).parent.parent.parent / "assets" / "stations" / "recorded" / "head.json"
EXAM = "open-book"
"""The recording whose head is kept: the one it is shown through first."""
CLOSE = 1e-3
"""By how much another machine's numbers may differ and still be the same head's."""
MOST = 1024
"""Rows that are told: more could not be told apart on a screen."""


@dataclass(frozen=True, slots=True)
class Head:
    """fp32 `(positions, head_size)` each: queries, keys, values; `naive` is the formula's output, `fast` the kernel's
    in the model's own dtype. `scale` is the factor before the softmax, `window` 0 where the head sees everything."""

    query: Tensor
    key: Tensor
    value: Tensor
    naive: Tensor
    fast: Tensor
    scale: float
    window: int

    @classmethod
    def of(cls, run: Run, layer: int, head: int) -> Head:
        """Of the prompt's first `MOST` positions. Raises `Refusal`: `not_kept` for a run whose tensors are gone or
        whose notes are not all there, `unfinished` while the prompt is read, `no_layer`, `no_head`."""
        shape = run.model.shape
        if run.cache is None or run.tape is None or run.settings.keeping.last:
            raise Refusal("not_kept")
        if not run.chosen:
            raise Refusal("unfinished")
        if not 0 <= layer < shape.layers:
            raise Refusal("no_layer", layer=layer + 1, layers=shape.layers)
        if not 0 <= head < shape.heads:
            raise Refusal("no_head", head=head + 1, heads=shape.heads)
        n = min(len(run.ids), run.cache.length, run.tape.length, MOST)
        group = head // (shape.heads // shape.kv_heads)
        query = run.tape.queries(layer, 0, n)[head]
        key, value = run.cache.keys[layer][group, :n], run.cache.values[layer][group, :n]
        scale, window = run.model.scaling[layer], shape.windows[layer]
        q, k, v = (tensor.float().cpu() for tensor in (query, key, value))
        places = torch.arange(n, device=query.device)
        far = places[:, None] - places
        seen = {"is_causal": True} if not window else {"attn_mask": (far >= 0) & (far < window)}
        with torch.inference_mode():
            fast = scaled_dot_product_attention(query[None], key[None], value[None], scale=scale, **seen)[0]
            return cls(q, k, v, naive(q, k, v, scale, window), fast.float().cpu(), scale, window)


def head_qkv(desk: Desk, run: str, layer: int, head: int) -> dict[str, Any]:
    """A job: `{"positions", "size", "scale", "window", "difference": largest between kernel and formula, "data": Q, K,
    V and the formula's output, little-endian float32 one after another}`. Raises as `Head.of`, and `not_kept`."""
    return told(Head.of(desk.run(run), layer, head))


def told(found: Head) -> dict[str, Any]:
    """See `head_qkv`."""
    parts = (found.query, found.key, found.value, found.naive)
    return {
        "positions": found.query.shape[0], "size": found.query.shape[1], "scale": found.scale, "window": found.window,
        "difference": float((found.fast - found.naive).abs().max()),
        "data": b"".join(part.contiguous().numpy().astype("<f4").tobytes() for part in parts),
    }  # fmt: skip


def recorded(model: LanguageModel, recording: Recording) -> dict[str, Any]:
    """The head that a recording is shown through first, on its exam sat now: as `head_qkv`, `data` in base64, and
    `{"run", "layer", "head", "model", "dtype", "machine", "created"}`."""
    from engine.labs.timing import sit

    assert recording.lens is not None and recording.lens.head is not None
    run, _ = sit(model, recording.settings)
    layer, head, facts = recording.lens.layer, recording.lens.head, model.facts
    made = told(Head.of(run, layer, head))
    return {
        "run": recording.name, "layer": layer, "head": head, "model": facts.model, "dtype": facts.dtype,
        "machine": facts.device_name or facts.device, "created": datetime.now(UTC).isoformat(timespec="seconds"),
        **made, "data": b64encode(made["data"]).decode(),
    }  # fmt: skip


def write(model: LanguageModel, recording: Recording) -> None:
    RECORDED.parent.mkdir(exist_ok=True)
    RECORDED.write_text(json.dumps(recorded(model, recording)) + "\n", "utf-8")


def same(model: LanguageModel, recording: Recording) -> bool:
    """Whether the kept head is this model's on this exam, up to rounding."""
    kept, now = json.loads(RECORDED.read_text("utf-8")), recorded(model, recording)
    fields = ("run", "layer", "head", "model", "positions", "size", "scale", "window")
    if any(kept[field] != now[field] for field in fields):
        return False
    before, after = (torch.frombuffer(bytearray(b64decode(one["data"])), dtype=torch.float32) for one in (kept, now))
    return before.shape == after.shape and bool((before - after).abs().max() <= CLOSE * after.abs().max())
