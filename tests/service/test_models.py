"""Fetching and loading: which state follows which, and what is told of each."""

from __future__ import annotations

import asyncio

import pytest

from engine.settings import Refusal
from engine.weights import catalogue
from service.models import Models
from tests.service.fakes import FakeStore, run_async


async def settled(models: Models, name: str) -> None:
    while models.status(name).state == "fetching":
        await asyncio.sleep(0.005)


def test_the_default_model_is_fetched_and_then_loaded() -> None:
    async def work() -> None:
        store, loads = FakeStore(), list[str]()
        store.go_on.clear()
        models = Models(store, "small", loads.append)
        models.engine_up()
        models.start()
        assert loads == []
        while models.status("small").progress != 0.5:
            await asyncio.sleep(0.005)
        assert (models.status("small").state, models.status("small").doing) == ("fetching", "fetch")
        with pytest.raises(Refusal, match="model_fetching"):
            models.want("small")
        store.go_on.set()
        await settled(models, "small")
        assert loads == ["small"] and models.status("small").state == "loading"
        models.loaded("small")
        assert models.listed()[0]["present"] and models.listed()[0]["state"] == "loaded"

    run_async(work())


def test_terms_are_never_accepted_for_anybody() -> None:
    async def work() -> None:
        models = Models(FakeStore(), "big")
        models.start()
        assert models.status("big").state == "absent"
        with pytest.raises(Refusal, match="terms_not_accepted") as refused:
            models.fetch("big", accept_terms=False)
        assert refused.value.values["terms"] == catalogue.GEMMA3.terms

    run_async(work())


@pytest.mark.parametrize(
    ("failure", "code"), [(Refusal("disk_full"), "disk_full"), (OSError("no network"), "fetch_failed")]
)
def test_a_fetch_that_fails_says_why_and_can_be_tried_again(failure: Exception, code: str) -> None:
    async def work() -> None:
        store = FakeStore()
        store.failure = failure
        models = Models(store, "small")
        models.start()
        await settled(models, "small")
        with pytest.raises(Refusal, match=code):
            models.want("small")
        store.failure = None
        models.fetch("small", accept_terms=False)
        await settled(models, "small")
        models.want("small")

    run_async(work())


def test_models_are_loaded_again_by_a_new_engine() -> None:
    loads: list[str] = []
    models = Models(FakeStore("small", "big"), "small", loads.append)
    models.engine_up()
    models.want("big")
    for name in ("small", "big"):
        models.loaded(name)
    models.want("big")
    assert loads == ["small", "big"]
    models.engine_down()
    assert models.status("big").state == "present"
    models.engine_up()
    assert loads == ["small", "big", "small", "big"]


def test_a_model_the_engine_refuses_says_why() -> None:
    models = Models(FakeStore("small"), "small")
    models.refused("small", Refusal("tap_unsupported", model="small"))
    with pytest.raises(Refusal, match="tap_unsupported"):
        models.want("small")


def test_the_default_may_be_a_folder_and_nobody_else_may_name_one() -> None:
    models = Models(FakeStore("small"), "/models/mine")
    models.want("/models/mine")
    assert [row["name"] for row in models.listed()] == ["/models/mine", "small", "big"]
    for name in ("/models/other", "org/name", ""):
        with pytest.raises(Refusal, match="unknown_model"):
            models.want(name)
