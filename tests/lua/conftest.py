"""A rig over an empty Redis."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lua.rig import Rig
from tests.support.server import RedisServer


@pytest.fixture(scope="session")
def one_rig(redis_server: RedisServer) -> Iterator[Rig]:
    rig = Rig(redis_server.url)
    yield rig
    rig.close()


@pytest.fixture
def rig(one_rig: Rig, redis_url: str) -> Rig:
    """The process's one rig, because making all scripts' texts takes as long as a test."""
    one_rig.begin()
    return one_rig
