"""How a word of a run was chosen, and what other settings would have made of it; where all layers looked for it.

Jobs as in `engine.jobs`. Logits are not kept: the token before the word is read again on the notes that are there, in
the time of one word, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import LongTensor, Tensor

from engine.cache.lens import Lens, quantise
from engine.model.tap import Pass
from engine.run import Run, sampling
from engine.settings import Refusal, Settings, check

if TYPE_CHECKING:
    from engine.jobs.desk import Desk

SAMPLING = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed")
"""The settings that decide between candidates. All others are the run's own."""


def choice(desk: Desk, run: str, step: int, settings: Mapping[str, float]) -> dict[str, Any]:
    """The distribution of word `step` after each of the library's processors, see `choose_again`."""
    return choose_again(desk.run(run), step, settings)


def choose_again(run: Run, step: int, settings: Mapping[str, float]) -> dict[str, Any]:
    """Word `step` of the whole answer (0 is the first) chosen once more, with `settings` in place of the run's own.

    `{"position": whose query chose, "token": the id the run chose, "settings", "stages": [{"name", "left": tokens that
    can still be drawn, "entropy": bits, "probabilities": of each candidate}, …], "candidates": [(id, text, repeated),
    …], "drawn": id}`. The first stage is `model`: its own distribution. Then come the processors in the order
    `generate` applies them, under the names of their settings; a greedy choice ends in `greedy`. Candidates are the ten
    likeliest of every stage, the token chosen and the one drawn, as likely as the model holds them; `repeated` are
    those the repetition penalty touches. `drawn` is what an answer with this seed draws as its word `step`: as many
    draws are thrown away before it.

    Raises `Refusal`: `not_kept`, `no_word`, `choice_differs`, and those of `engine.settings.check`.
    """
    changes: dict[str, Any] = {name: settings[name] for name in SAMPLING if name in settings}
    asked = replace(run.settings, **changes)
    check(asked)
    logits = read_again(run, step)
    position = len(run.ids) - 1 + step
    before = (run.ids + run.chosen)[: position + 1]
    stages, drawn = _apply(asked, logits, before, step)
    told = {token for _, scores in stages for token in sampling.measure(scores).ids[0] if scores[0, token] > -torch.inf}
    ids = sorted(told | {run.chosen[step], drawn}, key=lambda token: (-float(logits[token]), token))
    return {
        "position": position,
        "token": run.chosen[step],
        "settings": {name: getattr(asked, name) for name in SAMPLING},
        "stages": [_tell(name, scores, ids) for name, scores in stages],
        "candidates": [(token, run.model.text.piece(token), token in before) for token in ids],
        "drawn": drawn,
    }


@torch.inference_mode()
def read_again(run: Run, step: int) -> Tensor:
    """The logits word `step` was chosen from, fp32 `(vocabulary,)` on the CPU: the token before it through the model
    again, on the notes of those before it. Raises `Refusal`: `not_kept`, `no_word`, and `choice_differs` for
    the first word where notes are squeezed: the paper was read with K and V as computed, which are gone since."""
    cache = run.cache
    if cache is None:
        raise Refusal("not_kept")
    if not 0 <= step < len(run.chosen):
        raise Refusal("no_word", word=step + 1, words=len(run.chosen))
    if step == 0 and run.settings.keeping.dtype != "model":
        raise Refusal("choice_differs")
    position = len(run.ids) - 1 + step
    one = Pass([cache.again(position)], 1, ways=[run.way])
    logits: Tensor = run.model.forward([[(run.ids + run.chosen)[position]]], one)[0]
    return logits.cpu()


def _apply(settings: Settings, logits: Tensor, before: list[int], step: int) -> tuple[list[tuple[str, Tensor]], int]:
    """Scores `(1, vocabulary)` after each processor of the run's own chain, by its name; and the token drawn."""
    scores, seen = logits[None], LongTensor([before])
    stages = [("model", scores)]
    for name, processor in sampling.stages(settings):
        scores = processor(seen, scores)
        stages.append((name, scores))
    if settings.temperature < sampling.COLDEST:
        best = scores[0].argmax()
        stages.append(("greedy", torch.full_like(scores, -torch.inf).index_fill_(1, best, 0.0)))
        return stages, int(best)
    random = torch.Generator().manual_seed(settings.seed)
    for _ in range(step):  # a draw takes as many random numbers whatever the probabilities are
        torch.multinomial(torch.ones_like(scores[0]), 1, generator=random)
    return stages, int(torch.multinomial(scores[0].softmax(-1), 1, generator=random))


def _tell(name: str, scores: Tensor, ids: list[int]) -> dict[str, Any]:
    return {
        "name": name,
        "left": int((scores[0] > -torch.inf).sum()),
        "entropy": sampling.measure(scores).entropy[0],
        "probabilities": scores[0].softmax(-1)[ids].tolist(),
    }


def reads(desk: Desk, run: str, row: int) -> tuple[int, int, bytes]:
    """Where position `row` looked in every layer: `(layers, row + 1, uint8 values)`, weight = value / 255."""
    strongest = reads_of(desk.run(run).lens, row)
    return strongest.shape[0], strongest.shape[1], quantise(strongest, 255)


def reads_of(lens: Lens, row: int) -> Tensor:
    """fp32 `(layers, row + 1)`: of each layer the strongest look of any of its heads. Raises `Refusal("no_row")`."""
    return torch.stack([lens.rows(layer, row, row + 1)[:, 0].amax(0) for layer in range(lens.layers)]).cpu()
