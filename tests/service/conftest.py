"""A service with a fake engine, and a browser at its routes: what most of these tests begin with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.service.fakes import World, client_of


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def client(world: World) -> Iterator[TestClient]:
    with client_of(world) as client:
        yield client
