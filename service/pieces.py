"""Routes that cut a text into tokens and search a vocabulary (`docs/api.md`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request
from pydantic import ConfigDict, TypeAdapter

from engine.settings import Refusal
from engine.trace.codec import plain_tokens
from service.body import parse
from service.bounds import check_text
from service.core import Service


@dataclass(frozen=True, slots=True)
class TokeniseRequest:
    """A text, and how a run would be given it (`engine.settings.Settings`). Without `model`: the default one."""

    text: str
    model: str = ""
    control: Literal["text", "control"] = "text"
    mode: Literal["chat", "raw"] = "raw"


TokeniseRequest.__pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[attr-defined]
_REQUEST = TypeAdapter(TokeniseRequest)
_SCHEMA = {"requestBody": {"required": True, "content": {"application/json": {"schema": _REQUEST.json_schema()}}}}


def add_pieces(app: FastAPI, service: Service) -> None:
    @app.post("/tokenise", openapi_extra=_SCHEMA)
    async def tokenise(request: Request) -> dict[str, Any]:
        """The tokens a model would get, each with its bytes and the characters it covers."""
        asked = parse(await request.body(), _REQUEST)
        arguments = {"text": asked.text, "control": asked.control, "mode": asked.mode}
        model, done = await _ask(service, "tokenise", asked.model, arguments)
        return {**done, "model": model, "tokens": plain_tokens(done["tokens"])}

    @app.post("/tokenise/count", openapi_extra=_SCHEMA)
    async def count(request: Request) -> dict[str, Any]:
        """How many tokens a prompt would have, and the most that the model reads."""
        asked = parse(await request.body(), _REQUEST)
        model, done = await _ask(
            service, "count", asked.model, {"text": asked.text, "control": asked.control, "mode": asked.mode}
        )
        return {**done, "model": model}

    @app.get("/vocabulary")
    async def search_vocabulary(query: Annotated[str, Query()] = "", model: str = "") -> dict[str, Any]:
        """Pieces of a vocabulary that hold `query`, the closest first."""
        check_text(query)
        model, done = await _ask(service, "vocabulary", model, {"query": query})
        return {**done, "model": model, "hits": plain_tokens(done["hits"])}


async def _ask(service: Service, job: str, model: str, arguments: dict[str, Any]) -> tuple[str, Any]:
    """The model's name and the engine's answer. A model that only has to be prepared is, for the next time.

    Raises `Refusal`: `unknown_model`, `model_absent`, `model_fetching`, `engine_failed`, `tokenizer_not_prepared`, and
    what the engine refuses.
    """
    name = model or service.models.default
    status = service.models.status(name)
    if status.state in ("absent", "fetching"):
        raise Refusal(f"model_{status.state}", model=service.models.title(name))
    if service.health()["engine"] == "failed" and not service.models.connected:
        raise Refusal("engine_failed")
    try:
        return name, await service.jobs.ask(job, {"model": name, **arguments})
    except Refusal as refusal:
        if refusal.code != "model_not_ready":
            raise
        if not service.models.prepared(name) and name != service.models.default:
            raise Refusal("tokenizer_not_prepared", model=service.models.title(name)) from None
        service.models.want(name)
        raise Refusal("model_not_ready", model=service.models.title(name)) from None
