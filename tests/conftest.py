"""Fixtures every test may use: a real Redis, started once a test process and emptied between tests."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.support.server import RedisServer

# Files that take long begin first, so that none is left to one worker at the end.
LONG = ("tests/lua/test_model.py", "tests/acceptance/")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(
        key=lambda item: next((i for i, name in enumerate(LONG) if item.nodeid.startswith(name)), len(LONG))
    )


@pytest.fixture(autouse=True)
def logs_as_they_were() -> None:
    """A command that is run in this process sets logging up for good: no later test may notice."""
    root = logging.getLogger("brainq")
    root.handlers, root.propagate = [], True
    root.setLevel(logging.NOTSET)


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """One server a test process; use `redis_url` for one that is empty."""
    server = RedisServer().start()
    yield server
    server.stop()


@pytest.fixture
def redis_url(redis_server: RedisServer) -> str:
    """The url of a server without a key in it."""
    redis_server.flushall()
    return redis_server.url


@pytest.fixture
def no_keys_left(redis_server: RedisServer, redis_url: str) -> Iterator[None]:
    """Fails a test that leaves a key behind (`pytestmark = pytest.mark.usefixtures("no_keys_left")`)."""
    yield
    left = redis_server.keys()
    assert not left, f"keys were left behind: {left}"
