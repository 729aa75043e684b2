"""Looking into a run: which heads join two words, all heads in small, what each layer would have said.

Jobs as in `engine.jobs`: small pieces of work between two steps, on the queries and keys that the run left behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from engine.cache import RunCache
from engine.cache.lens import Lens, quantise
from engine.model import LanguageModel
from engine.model.tap import Pass
from engine.run import Run
from engine.run.sampling import rank_of
from engine.settings import Refusal

if TYPE_CHECKING:
    from engine.jobs.desk import Desk

SAID = 5
"""Tokens told per layer: the likeliest ones."""


def heads_for_pair(desk: Desk, run: str, row: int, column: int) -> list[tuple[int, int, float]]:
    """How much each head looks from position `row` to position `column`: `(layer, head, weight)` of all heads,
    strongest first."""
    return pair_of(desk.run(run).lens, row, column)


def pair_of(lens: Lens, row: int, column: int) -> list[tuple[int, int, float]]:
    """See `heads_for_pair`. One product per layer, over the one row. Raises `Refusal`: `no_row`, `looks_ahead`."""
    if column > row:
        raise Refusal("looks_ahead", row=row + 1, column=column + 1)
    weights = torch.stack([lens.rows(layer, row, row + 1)[:, 0, column] for layer in range(lens.layers)]).cpu()
    found = [(layer, head, value) for layer, heads in enumerate(weights.tolist()) for head, value in enumerate(heads)]
    return sorted(found, key=lambda one: -one[2])


def sampled_rows(desk: Desk, run: str, layer: int, size: int) -> tuple[int, int, bytes]:
    """Every head of a layer as a small picture: `(heads x cells, cells, uint8 values)`, weight = value / 255."""
    pictures = small_of(desk.run(run).lens, layer, size)
    return pictures.shape[0] * pictures.shape[1], pictures.shape[2], quantise(pictures, 255)


def small_of(lens: Lens, layer: int, size: int) -> Tensor:
    """fp32 `(heads, cells, cells)` with `cells = min(size, n)`; 0 above the diagonal.

    The positions are cut into `cells` spans, the k-th ending before `(k + 1) n // cells`. Row k is the attention row of
    its span's last position, as computed; a cell is the largest weight within its span of columns.
    """
    length = lens.length
    cells = min(size, length)
    stops = [(cell + 1) * length // cells for cell in range(cells)]
    span = torch.bucketize(torch.arange(length), torch.tensor(stops), right=True)
    rows = [lens.rows(layer, stop - 1, stop)[:, 0].cpu() for stop in stops]
    pictures = torch.zeros(rows[0].shape[0], cells, cells)
    for cell, row in enumerate(rows):
        pictures[:, cell].scatter_reduce_(1, span[: row.shape[1]].expand_as(row), row, "amax")
    return pictures


def logit_lens(desk: Desk, run: str) -> dict[str, Any]:
    """What each layer would have said at the prompt's last position, see `said_by_layers`."""
    return said_by_layers(desk.run(run))


def said_by_layers(run: Run) -> dict[str, Any]:
    """The logit lens (nostalgebraist 2020): each layer's hidden state of the prompt's last position through the final
    norm and the vocabulary product, as if the layers after it were not there. The model never does this itself.

    `{"position", "token", "layers": [{"probability", "rank", "top": [(id, text, probability), …]}, …]}`; `token` is
    the id the run chose first, probability and rank (0 is the likeliest) are its own in that layer.
    Raises `Refusal`: `not_kept`, `unfinished` while the prompt is read, `no_logit_lens`.
    """
    cache, position = run.cache, len(run.ids) - 1
    if cache is None:
        raise Refusal("not_kept")
    if not run.chosen:
        raise Refusal("unfinished")
    logits = _read_again(run, cache.again(position), run.ids[position])
    probabilities, token = logits.softmax(-1), run.chosen[0]
    best = probabilities.topk(SAID)
    layers = [
        {
            "probability": float(probabilities[layer, token]),
            "rank": rank_of(logits[layer], token),
            "top": [
                (index, run.model.text.piece(index), probability)
                for index, probability in zip(best.indices[layer].tolist(), best.values[layer].tolist(), strict=True)
            ],
        }
        for layer in range(len(logits))
    ]
    return {"position": position, "token": token, "layers": layers}


@torch.inference_mode()
def _read_again(run: Run, notes: RunCache, token: int) -> Tensor:
    """One token through the model again, on the notes before it: every layer's logits, fp32 `(layers, vocabulary)`.

    Raises `Refusal("no_logit_lens")` where the last layer's reading is not what the model itself says.
    """
    model = run.model
    layers, norm = _body(model)
    with _heard(layers) as states:
        said = model.forward([[token]], Pass([notes], 1, ways=[run.way]))[0]
    head = model.network.get_output_embeddings()
    logits: Tensor = head(norm(torch.stack(states))).float()
    if not float((logits[-1] - said).norm() / said.norm().clamp_min(1e-9)) < 6e-2:
        raise Refusal("no_logit_lens", model=model.facts.model)
    return logits


def _body(model: LanguageModel) -> tuple[nn.ModuleList, nn.Module]:
    """The list of layers and the norm after it: in all models of the library one follows the other."""
    parts = list(model.network.base_model.children())
    for part, after in pairwise(parts):
        if isinstance(part, nn.ModuleList) and len(part) == model.shape.layers:
            return part, after
    raise Refusal("no_logit_lens", model=model.facts.model)


@contextmanager
def _heard(layers: nn.ModuleList) -> Iterator[list[Tensor]]:
    """Every layer's output for the one token that passes, `(hidden size,)` each. The hooks are gone afterwards: the
    library's own `output_hidden_states` would leave its hooks on the model for good."""
    states: list[Tensor] = []

    def keep(_: nn.Module, __: Any, output: Any) -> None:
        states.append((output[0] if isinstance(output, tuple) else output)[0, -1])

    hooks = [layer.register_forward_hook(keep) for layer in layers]
    try:
        yield states
    finally:
        for hook in hooks:
            hook.remove()
