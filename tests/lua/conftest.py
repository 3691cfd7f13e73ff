"""A rig over an empty Redis."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lua.rig import Rig


@pytest.fixture
def rig(redis_url: str) -> Iterator[Rig]:
    rig = Rig(redis_url)
    yield rig
    rig.close()
