"""Fixtures for whole turns in one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.brains import diary, obedient
from tests.support.pump import Pump, sqlite_url


@pytest.fixture
def pumps(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Pump]]:
    """Makes pumps on one Redis and one database: `pumps(brain=..., owner=..., **settings)`."""
    monkeypatch.setenv(diary.DIRECTORY, str(tmp_path))
    sql_url = sqlite_url(tmp_path)
    with ExitStack() as stack:

        def make(brain: Any = None, **settings: Any) -> Pump:
            return stack.enter_context(Pump(brain or obedient.brain, redis_url, sql_url, **settings))

        yield make


@pytest.fixture
def pump(pumps: Callable[..., Pump]) -> Pump:
    return pumps()
