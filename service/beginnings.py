"""How long the first word of a paper's beginning takes, one length at a time (`docs/api.md`)."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import FastAPI, Query

from engine.plan.read import of_run
from engine.settings import Refusal
from engine.trace import Facts, Started
from service.core import Service
from service.costs import Costs
from service.explore import held

SECONDS = 120.0
"""Patience for one length; reading a long paper takes a slow machine a while."""

Tokens = Annotated[int, Query(ge=1, le=10**8, description="how many of the prompt's tokens")]


def add_beginnings(app: FastAPI, service: Service) -> None:
    @app.get("/runs/{run_id}/beginning")
    async def beginning(run_id: str, tokens: Tokens) -> dict[str, Any]:
        """Read the prompt's first tokens once more: seconds until the word after them is chosen."""
        if not await held(service, run_id):
            raise Refusal("not_kept")
        timed = await service.jobs.ask("beginning", {"run": run_id, "tokens": tokens}, SECONDS)
        facts = await facts_of(service, run_id)
        return {"source": "measured", **timed, "flops": await asyncio.to_thread(flops_of, facts, tokens)}


async def facts_of(service: Service, run_id: str) -> Facts:
    live = service.runs.live.get(run_id)
    events = live.events if live else (await service.archive.get(run_id)).file.trace.events
    return next(event.facts for event in events if isinstance(event, Started))


def flops_of(facts: Facts, tokens: int) -> int | None:
    """FLOPs of reading the first `tokens` tokens (`engine.plan.cost`); None where the model's sizes leave it open."""
    try:
        return Costs(of_run(facts), facts).total(tokens, 0)
    except Refusal:
        return None
