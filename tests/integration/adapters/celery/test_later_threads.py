"""A message for later work, asked for while a thread was left for it, and popped when visits have taken the last."""

from __future__ import annotations

from collections.abc import Iterator
from queue import Empty
from typing import Any

import pytest

from brainq.adapters.celery.app import make_app
from brainq.adapters.celery.envelope import envelope
from brainq.adapters.celery.names import FINALIZE_QUEUE, FINALIZE_STEP, later_key
from brainq.runtime.processes.later_threads import LATER_THREADS
from tests.integration.adapters.celery.worker import settings_for
from tests.support.server import RedisServer

TURNS = ("t1", "t2")  # as many as four threads may have at later work


@pytest.fixture
def visits() -> Iterator[None]:
    """Other turns' visits, and what follows them, are gone afterwards."""
    yield
    for turn in TURNS:
        LATER_THREADS.leave(turn)
    LATER_THREADS.follow(0, {})


@pytest.fixture
def channel(redis_server: RedisServer) -> Iterator[Any]:
    """A finalizer's of four threads; `taken` are its messages."""
    with make_app(settings_for(redis_server.url), [FINALIZE_QUEUE]).connection_for_read() as connection:
        channel: Any = connection.channel()
        channel.taken = []
        channel.basic_qos(0, 4, False)
        channel.basic_consume(FINALIZE_QUEUE, False, channel.taken.append, "finalizer")
        channel.client.connection = channel.client.connection_pool.get_connection()  # as kombu's poller does
        yield channel
        channel.qos._delivered.clear()  # nobody runs what was taken: it is not to be returned at the end


@pytest.mark.usefixtures("redis_url", "visits")
def test_it_goes_back_to_its_place_and_is_taken_when_a_thread_is_left(redis_server: RedisServer, channel: Any) -> None:
    key = later_key(settings_for(redis_server.url), FINALIZE_QUEUE)
    bell = envelope(FINALIZE_STEP, ("s1", "t3", "decision"), "t3.final", FINALIZE_QUEUE, "t3")
    channel._brpop_start(timeout=60)
    assert [LATER_THREADS.try_enter(turn) for turn in TURNS] == [True, True]
    redis_server.command("LPUSH", key, bell)
    redis_server.command("LPUSH", key, "somebody else's")
    with pytest.raises(Empty):
        channel._brpop_read()
    assert (channel.taken, redis_server.command("LINDEX", key, "-1")) == ([], [bell])
    LATER_THREADS.leave(TURNS[0])
    channel._brpop_start(timeout=60)
    channel._brpop_read()
    assert [message.headers["root_id"] for message in channel.taken] == ["t3"]


@pytest.mark.usefixtures("redis_url", "visits")
def test_it_is_not_asked_for_while_no_thread_is_left(redis_server: RedisServer, channel: Any) -> None:
    key = later_key(settings_for(redis_server.url), FINALIZE_QUEUE).encode()

    def asked() -> bytes:
        return b"".join(channel._packed_pop(channel.client.connection, [FINALIZE_QUEUE], 60))

    assert key in asked()
    for turn in TURNS:
        LATER_THREADS.enter(turn)
    assert key not in asked()
