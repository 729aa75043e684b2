"""Labs asked from beside runs: the plan of one, and one piece of it measured. Jobs as in `engine.jobs`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.labs import LABS
from engine.labs.base import Lab, giving_way
from engine.settings import Refusal

if TYPE_CHECKING:
    from engine.jobs.desk import Desk
    from engine.model import LanguageModel


def lab_plan(desk: Desk, model: str, lab: str) -> list[dict[str, Any]]:
    """The pieces there are to measure with a loaded model. Raises `Refusal`: `model_not_ready`, `no_lab`."""
    return known(lab).plan(_model(desk, model))


def lab_piece(desk: Desk, model: str, lab: str, piece: str) -> dict[str, Any]:
    """One piece, measured now, with `active` and `busy` (`engine.jobs.machine.Peak`).

    Raises `Refusal`: as `lab_plan`, `no_piece`, `others_at_work` while runs go on or when one wants to begin, and what
    the lab refuses.
    """
    if desk.active:
        raise Refusal("others_at_work")
    with giving_way(desk.give_way):
        return measured(known(lab), _model(desk, model), piece)


def measured(lab: Lab, model: LanguageModel, piece: str) -> dict[str, Any]:
    """The result of a piece, and how many cores others kept busy meanwhile. Raises `Refusal("no_piece")`."""
    from engine.measure.quiet import Elsewhere

    asked = next((one for one in lab.plan(model) if one["piece"] == piece), None)
    if asked is None:
        raise Refusal("no_piece", piece=piece[:60], lab=lab.name)
    elsewhere = Elsewhere()
    result = lab.measure(model, asked)
    return {**result, "busy": elsewhere.cores}


def known(name: str) -> Lab:
    """Raises `Refusal("no_lab")`."""
    if name not in LABS:
        raise Refusal("no_lab", name=name[:40], known=", ".join(LABS))
    return LABS[name]


def _model(desk: Desk, name: str) -> LanguageModel:
    if name not in desk.models:
        raise Refusal("model_not_ready", model=name)
    return desk.models[name]
