"""The connections for scripts outlive the server: one that was restarted is reached again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

import brainq
from brainq.adapters.redis import connection
from brainq.adapters.redis.connection import SCRIPT_CONNECTIONS, Client, make_client
from tests.support.server import RedisServer

SCRIPT = ("EVAL", "return redis.call('INCR', KEYS[1])", 1, "n")


@pytest.fixture
def server() -> Iterator[RedisServer]:
    made = RedisServer(durable=True).start()
    yield made
    made.stop()


def counted_once_each(client: Client) -> int:
    """Runs the script on every connection; the last count. A crash may have taken what was not yet in its file."""
    first, *others = [int(client.execute_command(*SCRIPT)) for _ in range(SCRIPT_CONNECTIONS)]
    assert others == list(range(first + 1, first + SCRIPT_CONNECTIONS))
    return first + len(others)


def test_idle_connections_are_opened_anew_after_a_restart(server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    client = make_client(server.url)
    for _ in range(SCRIPT_CONNECTIONS):
        client.execute_command(*SCRIPT)
    server.crash()
    monkeypatch.setattr(connection, "CHECK_AFTER_IDLE_S", -1.0)
    counted = counted_once_each(client)
    assert client.many([("GET", "n")]) == [str(counted)]
    client.close()


def test_one_connection_in_use_fails_and_all_are_then_opened_anew(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CHECK_AFTER_IDLE_S", 3_600.0)  # however long the crash takes here
    client = make_client(server.url)
    for _ in range(SCRIPT_CONNECTIONS):
        client.execute_command(*SCRIPT)
    server.crash()
    with pytest.raises(redis.ConnectionError):
        client.execute_command(*SCRIPT)
    counted_once_each(client)
    client.close()


def test_what_an_idle_connection_finds_spares_those_that_were_in_use(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = make_client(server.url)
    for _ in range(SCRIPT_CONNECTIONS):
        client.execute_command(*SCRIPT)
    server.crash()
    first = iter([True])  # the others have been idle for too short a time to be looked at
    monkeypatch.setattr(connection, "CHECK_AFTER_IDLE_S", -1.0)

    def has_hung_up(_: object) -> bool:
        return next(first, False)

    monkeypatch.setattr(connection, "_has_hung_up", has_hung_up)
    counted_once_each(client)
    client.close()


def test_an_operator_who_lists_clients_reads_whose_they_are(server: RedisServer) -> None:
    client = make_client(server.url)
    client.execute_command(*SCRIPT)
    shown = f"redis-py(brainq_v{brainq.__version__})"
    assert [row["cmd"] for row in client.client_list() if row["lib-name"] == shown] == ["eval", "client|list"]
    client.close()
