"""A pooler in transaction mode: nothing that outlives a transaction is left on a server that others share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine, literal, select

from brainq.adapters.sql.database import Database
from brainq.adapters.sql.engine import make_engine, pooler_between, transaction
from brainq.adapters.sql.migrations.upgrade import upgrade
from tests.support.pgbouncer import PROGRAM, PgBouncer
from tests.support.postgres import postgres_server, postgres_url

LIMITS = "SELECT current_setting('statement_timeout'), current_setting('idle_in_transaction_session_timeout')"
UNLIMITED, LIMITED = ("0", "0"), ("15s", "1min")
# Unnoticed by psycopg, as on another server.
FORGET = "DO $$ BEGIN EXECUTE 'DEALLOCATE ALL'; END $$"
FORGET_ONE = (
    "DO $$ BEGIN EXECUTE (SELECT 'DEALLOCATE ' || quote_ident(name) FROM pg_prepared_statements "
    "WHERE statement LIKE '%%one%%' LIMIT 1); END $$"
)
ONE = select(literal(1).label("one"))


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with postgres_url() as made:
        yield made


def engine_of(url: str, option: str = "") -> Engine:
    return make_engine(url + option, pool_size=1)


def limits(engine: Engine) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The limits after a transaction, and within it."""
    with transaction(engine) as connection:
        within = tuple(connection.exec_driver_sql(LIMITS).one())
    with engine.connect() as connection:
        return tuple(connection.exec_driver_sql(LIMITS).one()), within


def prepared_statements(engine: Engine) -> int:
    """How many there are on a connection after statements that were often run, alone and in transactions."""
    database = Database(engine)
    for _ in range(8):
        database.all(ONE, {})
        with database.transaction() as connection:
            connection.all(ONE, {})
    with engine.connect() as connection:
        return int(connection.exec_driver_sql("SELECT count(*) FROM pg_prepared_statements").scalar_one())


@pytest.mark.parametrize(
    ("option", "expected", "prepares"),
    [
        ("", (LIMITED, LIMITED), True),
        ("&pooled=false", (LIMITED, LIMITED), True),
        ("&pooled=true", (UNLIMITED, LIMITED), False),
        ("&prepare_threshold=none", (LIMITED, LIMITED), False),
        ("&prepare_threshold=0", (LIMITED, LIMITED), True),
        ("&pooled=true&prepare_threshold=0", (UNLIMITED, LIMITED), False),
        ("&options=-c%20statement_timeout%3D7s", (("7s", "1min"), ("7s", "1min")), True),
    ],
)
def test_limits_are_those_of_the_session_or_of_each_transaction(
    url: str, option: str, expected: tuple[Any, Any], prepares: bool
) -> None:
    engine = engine_of(url, option)

    assert (limits(engine), prepared_statements(engine) > 0) == (expected, prepares)
    engine.dispose()


def test_a_prepared_statement_that_is_on_another_server_is_run_again_and_the_next_is_not_prepared(url: str) -> None:
    engine = engine_of(url)
    assert prepared_statements(engine) > 0
    with engine.connect() as connection:
        connection.exec_driver_sql(FORGET)

    assert Database(engine).all(ONE, {}) == [{"one": 1}]
    assert prepared_statements(engine) == 0
    engine.dispose()


def test_a_transaction_that_met_another_server_fails_and_the_next_one_does_not(url: str) -> None:
    engine = engine_of(url)
    assert prepared_statements(engine) > 0
    with engine.connect() as connection:
        connection.exec_driver_sql(FORGET_ONE)
    database = Database(engine)

    with pytest.raises(Exception, match="does not exist"), database.transaction() as connection:
        connection.all(ONE, {})
    with database.transaction() as connection:
        assert connection.all(ONE, {}) == [{"one": 1}]
    assert limits(engine) == (UNLIMITED, LIMITED)
    engine.dispose()


needs_pgbouncer = pytest.mark.needs(PROGRAM, "pgbouncer: apt-get install pgbouncer")


@needs_pgbouncer
@pytest.mark.parametrize("servers", [1, 3])
def test_a_real_pooler_is_found_out_and_strangers_see_their_own_defaults(url: str, servers: int) -> None:
    database = url.partition("?")[0].rpartition("/")[2]
    with PgBouncer(postgres_server().directory, servers) as pooler:
        engine = make_engine(pooler.url(database))
        upgrade(engine)

        assert (prepared_statements(engine), limits(engine)) == (0, (UNLIMITED, LIMITED))
        assert pooler_between(engine) is True
        engine.dispose()
        with psycopg.connect(pooler.url(database), autocommit=True, prepare_threshold=None) as stranger:
            assert stranger.execute(LIMITS).fetchone() == UNLIMITED
            assert stranger.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)


@needs_pgbouncer
def test_a_pooler_that_is_taken_for_none_is_seen_by_two_connections(url: str) -> None:
    with PgBouncer(postgres_server().directory, 4) as pooler:
        engine = make_engine(pooler.url("postgres") + "?pooled=false")

        assert pooler_between(engine) is None
        engine.dispose()


def test_two_connections_without_a_pooler_have_servers_of_their_own(url: str) -> None:
    engine = make_engine(url)

    assert pooler_between(engine) is False
    engine.dispose()
