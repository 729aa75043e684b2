"""What a page asks the service. Pages run in threads of their own; the service belongs to its event loop."""

from __future__ import annotations

import asyncio
import logging

import service
from engine.settings import Refusal

_PATIENCE = 5.0
"""Seconds a page waits for an answer that takes the service milliseconds."""
_log = logging.getLogger(__name__)


def knows(run: str) -> bool:
    """Whether there is such a run. Where no service answers, nothing is doubted: the scene says what is wrong."""
    try:
        desk = service.current()
    except LookupError:
        return True
    try:
        asyncio.run_coroutine_threadsafe(desk.summary(run), desk.loop).result(_PATIENCE)
    except Refusal:
        return False
    except TimeoutError:
        _log.warning("the service does not answer")
    return True
