"""The route of what is simulated (`docs/api.md`): prefill/decode disaggregation with other loads, links and seeds.

No torch and no engine: the costs are results of the lab, measured here or recorded. One simulation at a time, in a
thread: a class that moves sliders must not take the processor from whoever waits for words.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import Annotated, Any

from fastapi import FastAPI, Query

from engine.disaggregation.costs import Costs
from engine.disaggregation.load import Mix
from engine.disaggregation.told import Asked, Split, over_loads, simulated
from engine.labs.disaggregation import LAB, costs_from
from engine.labs.recorded import recorded
from engine.settings import Refusal
from service.core import Service
from service.measures import Measures

_USUAL = Asked()
Load = Annotated[float, Query(ge=0.05, le=1.2, description="people per second, as a share of `capacity`")]
Bandwidth = Annotated[float, Query(ge=1e6, le=1e13, description="bits per second")]
Seed = Annotated[int, Query(ge=0, le=2**31 - 1)]


def add_simulation(app: FastAPI, service: Service, measures: Measures) -> None:
    one = asyncio.Lock()

    async def costs(model: str, shipped: bool) -> Costs:
        """As measured here, or as recorded. Raises `Refusal`: `costs_not_measured`, `no_lab_recorded`."""
        if shipped:
            told = await asyncio.to_thread(recorded, LAB)
            if told is None:
                raise Refusal("no_lab_recorded", name=LAB.name)
            results = told["results"]
        else:
            results = await measures.lab_results(LAB, model or service.models.default)
        found = costs_from(results)
        if found is None:
            raise Refusal("costs_not_measured")
        return found

    @app.get(f"/labs/{LAB.name}/simulate")
    async def simulate(
        model: str = "", shipped: Annotated[bool, Query(alias="recorded")] = False, load: Load = _USUAL.load,
        bandwidth: Bandwidth = _USUAL.bandwidth, seed: Seed = _USUAL.seed, split: Split = _USUAL.split,
        mix: Mix = _USUAL.mix,
    ) -> dict[str, Any]:  # fmt: skip
        """One crowd served by machines that do both and by machines that read or write."""
        found, asked = await costs(model, shipped), Asked(load, bandwidth, seed, split, mix)
        async with one:
            return {"source": "simulated", **await asyncio.to_thread(cached, found, asked)}

    @app.get(f"/labs/{LAB.name}/loads")
    async def simulate_loads(
        model: str = "", shipped: Annotated[bool, Query(alias="recorded")] = False,
        bandwidth: Bandwidth = _USUAL.bandwidth, split: Split = _USUAL.split, mix: Mix = _USUAL.mix,
    ) -> dict[str, Any]:  # fmt: skip
        """The percentiles by load, with several seeds."""
        found, asked = await costs(model, shipped), Asked(bandwidth=bandwidth, split=split, mix=mix)
        async with one:
            return {"source": "simulated", "loads": await asyncio.to_thread(over_loads, found, asked)}


cached = lru_cache(64)(simulated)
"""What a page asks for, its charts ask for as well."""
