"""A tenant moves from SQLite to Postgres, and back."""

from __future__ import annotations

from pathlib import Path

from brainq.adapters.sql.store import Store
from tests.contrib.cells.test_move import go_on
from tests.contrib.cells.two import TENANT, TwoCells, parked_tenant
from tests.support.postgres import postgres_url
from tests.support.pump import sqlite_url
from tests.support.server import RedisServer


def test_rows_say_the_same_in_another_kind_of_database(
    redis_url: str, other_redis: RedisServer, tmp_path: Path
) -> None:
    other_redis.flushall()
    (tmp_path / "lite").mkdir()
    with postgres_url() as url:
        Store.open(url).close()
        urls = (sqlite_url(tmp_path / "lite"), url)
        with TwoCells(tmp_path, (redis_url, other_redis.url), urls) as two:
            made = parked_tenant(two)
            before = two.rows("a")
            two.mover().move(TENANT, "b")
            assert two.rows("b") == before
            two.assert_gone_from("a", "b", 2)
            go_on(two, "b", made)
            whole = two.rows("b")
            two.mover().move(TENANT, "a")
            assert two.rows("a") == whole
            two.assert_gone_from("b", "a", 3)
