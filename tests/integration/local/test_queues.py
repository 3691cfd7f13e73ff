"""Messages are taken from the lists of queues one by one, each of them once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, cast

import pytest

from brainq.adapters.redis.connection import UNAVAILABLE_ERRORS, Client, make_client
from brainq.adapters.redis.queues import Message, QueueReader
from tests.support.server import RedisServer
from tests.support.wait import wait_until


@pytest.fixture
def client(redis_url: str) -> Iterator[Client]:
    client = make_client(redis_url)
    yield client
    client.close()


@pytest.fixture
def reader(client: Client) -> Iterator[QueueReader]:
    reader = QueueReader(client)
    yield reader
    reader.close()


def test_the_oldest_message_of_the_first_list_comes_first(client: Client, reader: QueueReader) -> None:
    client.lpush("later", "x")
    client.lpush("turns", "a", "b")
    taken = [reader.pop(("turns", "later"), 1.0) for _ in range(3)]
    assert taken == [Message("turns", "a"), Message("turns", "b"), Message("later", "x")]
    assert reader.pop(("turns", "later"), 0.01) is None


def test_a_returned_message_is_the_next_one(client: Client, reader: QueueReader) -> None:
    client.lpush("turns", "a", "b")
    assert reader.pop(("turns",), 1.0) == Message("turns", "a")
    reader.put_back(Message("turns", "a"))
    assert [reader.pop(("turns",), 1.0) for _ in range(2)] == [Message("turns", "a"), Message("turns", "b")]


def test_a_wait_is_ended_from_another_thread(client: Client, reader: QueueReader) -> None:
    ended: list[Message | None] = []
    waits = threading.Thread(target=lambda: [ended.append(reader.pop(("turns",), 2.0)) for _ in range(60)])
    waits.start()
    wait_until(lambda: client.info("clients")["blocked_clients"], "it waits")
    reader.wake()
    wait_until(lambda: ended, "its wait ends", every_s=0.001)
    assert ended[0] is None
    client.lpush("turns", *("end" for _ in range(60)))
    waits.join(120)


def test_after_a_broken_connection_it_connects_anew(redis_server: RedisServer, client: Client) -> None:
    reader = QueueReader(client)
    assert reader.pop(("turns",), 0.01) is None
    # Its own alone: other tests of this process keep connections to this server.
    client.client_kill_filter(_id=cast(Any, reader)._id)
    with pytest.raises(UNAVAILABLE_ERRORS):
        reader.pop(("turns",), 1.0)
    client.lpush("turns", "a")
    assert reader.pop(("turns",), 1.0) == Message("turns", "a")
    assert str(cast(Any, reader)._id) in {line["id"] for line in client.client_list()}  # that `wake` unblocks
    reader.close()
