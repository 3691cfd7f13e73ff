"""Connections whose other end went silent are given up, and the rest with them; work goes on over new ones."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from sqlalchemy.exc import DBAPIError

from brainq.adapters.redis import connection as connection_module
from brainq.adapters.redis.connection import make_client
from brainq.adapters.sql import engine as engine_module
from brainq.adapters.sql.engine import make_engine, transaction
from brainq.adapters.sql.store import Store
from tests.support.brains import obedient
from tests.support.brains.obedient import script
from tests.support.postgres import postgres_server, postgres_url
from tests.support.proxy import Proxy
from tests.support.pump import Pump
from tests.support.server import RedisServer


@pytest.fixture
def postgres() -> Iterator[tuple[Proxy, str]]:
    """A proxy before Postgres, and a database's url through it."""
    with postgres_url() as url, Proxy(postgres_server().directory / ".s.PGSQL.5432") as proxy:
        name = url.split("/")[3].split("?")[0]
        yield proxy, f"postgresql://postgres@127.0.0.1:{proxy.port}/{name}"


@pytest.fixture
def to_redis(redis_server: RedisServer, redis_url: str) -> Iterator[tuple[Proxy, str]]:
    port = int(redis_url.rpartition(":")[2].split("/")[0])
    with Proxy(("127.0.0.1", port)) as proxy:
        yield proxy, f"redis://127.0.0.1:{proxy.port}/0"


def test_a_statement_on_a_half_open_connection_ends(postgres: tuple[Proxy, str]) -> None:
    proxy, url = postgres
    engine = make_engine(url, answer_s=1.0)
    try:
        with engine.connect() as connection:
            assert connection.exec_driver_sql("SHOW statement_timeout").scalar() == "750ms"
        proxy.go_silent()
        with pytest.raises(DBAPIError, match="did not answer within 1 s"), engine.connect() as connection:
            connection.exec_driver_sql("SELECT 1")
        proxy.heal()
        with engine.connect() as connection:
            assert connection.exec_driver_sql("SELECT 1").scalar() == 1
    finally:
        engine.dispose()


def test_one_ping_that_is_not_answered_costs_one_wait_and_not_one_a_connection(
    postgres: tuple[Proxy, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, url = postgres
    monkeypatch.setattr(engine_module, "PING_AFTER_IDLE_S", 0.0)
    monkeypatch.setattr(engine_module, "PING_S", 1.0)
    engine = make_engine(url, answer_s=30.0, pool_size=8)
    try:
        barrier = threading.Barrier(8)

        def hold() -> None:
            with engine.connect():
                barrier.wait(20)

        holders = [threading.Thread(target=hold) for _ in range(8)]
        for holder in holders:
            holder.start()
        for holder in holders:
            holder.join()
        assert proxy.connected == 8
        proxy.go_silent()
        proxy.heal()
        before = time.monotonic()
        for _ in range(8):
            with engine.connect() as connection:
                assert connection.exec_driver_sql("SELECT 1").scalar() == 1
        assert time.monotonic() - before < 8  # one wait of 1 s, not eight
    finally:
        engine.dispose()


def test_the_limits_of_an_address_win_and_a_transaction_is_bounded_too(postgres: tuple[Proxy, str]) -> None:
    _, url = postgres
    engine = make_engine(f"{url}?options=-c%20statement_timeout%3D4000&keepalives_idle=77", answer_s=1.0)
    try:
        with transaction(engine) as connection:
            assert connection.exec_driver_sql("SHOW statement_timeout").scalar() == "4s"
            assert connection.exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar() == "1min"
    finally:
        engine.dispose()


def test_a_connection_that_migrated_is_bounded_again() -> None:
    with postgres_url() as url, Store.open(url, answer_s=7.0) as store, store.engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        assert driver.answer_s == 7.0


def test_a_fleet_goes_on_after_its_postgres_connections_went_half_open(
    postgres: tuple[Proxy, str], redis_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    proxy, url = postgres
    monkeypatch.setenv("BRAINQ_TEST_DIR", str(tmp_path))
    store_open = Store.open

    def impatient(sql_url: str, **given: Any) -> Store:
        return store_open(sql_url, answer_s=1.0, **given)

    monkeypatch.setattr(Store, "open", impatient)
    with Pump(obedient.brain, redis_url, url) as pump:
        assert pump.finish(pump.submit("s1", script(final="before"))).text == "before"
        handle = pump.submit("s1", script([("write", {"name": "w"})], final="after"))
        proxy.go_silent()
        proxy.heal()
        while bell := pump.take():
            try:
                pump.answer(bell)
            except Exception:
                break
        assert pump.finish(handle, timeout_s=60).text == "after"


def test_one_script_that_is_not_answered_costs_one_wait_and_not_one_a_line(
    to_redis: tuple[Proxy, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, url = to_redis
    monkeypatch.setattr(connection_module, "SOCKET_TIMEOUT_S", 1.0)
    client = make_client(url)
    try:
        for _ in range(connection_module.SCRIPT_CONNECTIONS):
            assert client.execute_command("EVAL", "return 1", 0) == 1
        proxy.go_silent()
        proxy.heal()
        with pytest.raises(redis.TimeoutError):
            client.execute_command("EVAL", "return 1", 0)
        before = time.monotonic()
        for _ in range(connection_module.SCRIPT_CONNECTIONS):
            assert client.execute_command("EVAL", "return 1", 0) == 1
        assert time.monotonic() - before < 5
    finally:
        client.close()
        client.connection_pool.disconnect()
