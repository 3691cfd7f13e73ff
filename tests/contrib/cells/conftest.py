"""Two cells for each test, and the fixtures of one deployment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contrib.cells.two import Sharers, Spenders, TwoCells
from tests.integration.adapters.sql.conftest import backend, emptied_database, migrated_file, sql_url, store, store_url
from tests.support.server import RedisServer

__all__ = ["backend", "emptied_database", "migrated_file", "sql_url", "store", "store_url"]


@pytest.fixture(scope="session")
def other_redis() -> Iterator[RedisServer]:
    server = RedisServer().start()
    yield server
    server.stop()


@pytest.fixture
def two(redis_url: str, other_redis: RedisServer, tmp_path: Path) -> Iterator[TwoCells]:
    other_redis.flushall()
    with TwoCells(tmp_path, (redis_url, other_redis.url)) as cells:
        yield cells


@pytest.fixture
def spenders(redis_url: str, other_redis: RedisServer, tmp_path: Path) -> Iterator[Spenders]:
    other_redis.flushall()
    with Spenders(tmp_path, (redis_url, other_redis.url)) as cells:
        yield cells


@pytest.fixture
def sharers(redis_url: str, other_redis: RedisServer, tmp_path: Path) -> Iterator[Sharers]:
    other_redis.flushall()
    with Sharers(tmp_path, (redis_url, other_redis.url)) as cells:
        yield cells
