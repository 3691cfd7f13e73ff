"""Whole turns on a Postgres behind a real PgBouncer in transaction mode, with fewer servers than there are threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.support.brains.obedient import script
from tests.support.pgbouncer import PROGRAM, PgBouncer
from tests.support.postgres import postgres_server, postgres_url
from tests.support.world import World

TURNS, AT_A_TIME, SERVERS = 80, 12, 4


@pytest.mark.needs(PROGRAM, "pgbouncer: apt-get install pgbouncer")
def test_every_turn_completes_and_a_stranger_in_the_pool_sees_its_own_defaults(
    tmp_path_factory: pytest.TempPathFactory, sid: str
) -> None:
    with postgres_url() as url, PgBouncer(postgres_server().directory, SERVERS) as pooler:
        database = url.partition("?")[0].rpartition("/")[2]
        world = World(tmp_path_factory.mktemp("pooled"), sql_url=pooler.url(database))
        try:
            world.start()

            def ask(number: int) -> str:
                message = script([("write", {"name": str(number)})], final=str(number))
                return world.client.submit(f"{sid}-{number}", message).result(timeout_s=120).text

            with ThreadPoolExecutor(AT_A_TIME) as threads:
                texts = list(threads.map(ask, range(TURNS)))
            assert texts == [str(number) for number in range(TURNS)]
            with psycopg.connect(pooler.url(database), autocommit=True, prepare_threshold=None) as stranger:
                defaults = [
                    stranger.execute(f"SHOW {name}").fetchone() for name in ("statement_timeout", "lock_timeout")
                ]
                found = stranger.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()
            assert (defaults, found) == ([("0",), ("0",)], (0,))
        finally:
            world.stop()
