"""Runs as a service: the engine process's client, queue, run store, HTTP and WebSocket routes. No torch in here."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from service.core import Service

_current: list[Service] = []


def current() -> Service:
    """This process's service, for the pages. Raises `LookupError` outside the app."""
    if not _current:
        raise LookupError("the service runs in the app only")
    return _current[-1]


def use(service: Service) -> None:
    """Make it the process's service."""
    _current[:] = [service]
