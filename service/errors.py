"""Refusals as HTTP answers: a code for programs, a sentence for people, never a traceback."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import Headers, QueryParams
from starlette.responses import JSONResponse
from starlette.types import Scope

from engine.settings import Refusal
from engine.words import say

_STATUS = {
    "host_refused": 403,
    "origin_refused": 403,
    "terms_not_accepted": 403,
    "no_figure": 404,
    "no_route": 404,
    "fork_not_kept": 404,
    "choices_not_kept": 404,
    "layers_not_kept": 404,
    "no_lab_recorded": 404,
    "not_kept": 404,
    "notes_not_kept": 404,
    "row_not_recorded": 404,
    "unknown_run": 404,
    "wrong_method": 405,
    "unfinished": 409,
    "costs_not_measured": 409,
    "measured_elsewhere": 409,
    "no_notes": 409,
    "body_too_large": 413,
    "prompt_too_long": 413,
    "text_too_long": 413,
    "too_long_to_watch": 413,
    "unexpected": 500,
    "engine_busy": 503,
    "engine_died": 503,
    "engine_failed": 503,
    "fetch_failed": 503,
    "looks_wanted": 503,
    "measuring": 503,
    "others_at_work": 503,
    "model_absent": 503,
    "model_fetching": 503,
    "queue_full": 503,
    "tokenizer_not_prepared": 503,
    "too_many_jobs": 503,
}
"""All others are 422: something about the request itself."""


def status_of(refusal: Refusal) -> int:
    return _STATUS.get(refusal.code, 422)


def language(scope: Scope) -> str:
    """`zh` or `en`: what `?lang=` says, else the first of the two in `Accept-Language`."""
    asked = QueryParams(scope["query_string"]).get("lang") or Headers(scope=scope).get("accept-language", "")
    wanted = (part.strip().lower()[:2] for part in asked.split(","))
    return next((code for code in wanted if code in ("en", "zh")), "en")


def as_json(refusal: Refusal, lang: str) -> dict[str, Any]:
    """`{code, values, message}`. A code without a sentence (a bug, and tested against) is still no traceback."""
    try:
        message = say(f"errors.{refusal.code}", lang, **refusal.values)
    except KeyError:
        message = say("errors.unexpected", lang)
    return {"code": refusal.code, "values": refusal.values, "message": message}


def response(refusal: Refusal, scope: Scope) -> JSONResponse:
    return JSONResponse({"error": as_json(refusal, language(scope))}, status_of(refusal))
