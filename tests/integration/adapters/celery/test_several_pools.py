"""A worker of several pools: each takes messages while it has a free thread, whatever the others do."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from queue import Empty
from typing import Any

import pytest
from celery.bootsteps import TERMINATE
from celery.worker import state

from brainq.adapters.celery import names
from brainq.adapters.celery.app import make_app
from brainq.adapters.celery.envelope import envelope
from brainq.adapters.celery.names import CALL_RUN, READ_ONLY_QUEUE, TURN_ADVANCE, TURNS_QUEUE, queue_key
from brainq.runtime.processes.pool_threads import POOL_THREADS
from tests.integration.adapters.celery.worker import running, settings_for
from tests.support.server import RedisServer
from tests.support.wait import wait_until

QUEUES = (*names.COORDINATOR_QUEUES, *names.PARALLEL_QUEUES)
THREADS = {"coordinator": 2, "parallel": 2}


@pytest.fixture(autouse=True)
def process() -> Iterator[None]:
    """This process serves no pool afterwards."""
    yield
    POOL_THREADS.serve({})


def read(number: int) -> str:
    return envelope(CALL_RUN, ("s1", "t1", f"r{number}", 1), f"t1.r{number}.1", READ_ONLY_QUEUE, "t1", "look")


def turn(number: int) -> str:
    return envelope(TURN_ADVANCE, ("s1", f"t{number}", 0), f"t{number}.advance.0", TURNS_QUEUE, f"t{number}")


class Work:
    """Reads that go on until they may end, and turns that end at once."""

    def __init__(self) -> None:
        self.may_end = threading.Event()
        self.reads: list[str] = []
        self.turns: list[str] = []

    def read(self, _session: str, _turn: str, call: str, _attempt: int) -> None:
        self.reads.append(call)
        assert self.may_end.wait(60)

    def advance(self, _session: str, turn: str, _fence: int) -> None:
        self.turns.append(turn)


@pytest.fixture
def work(redis_url: str) -> Iterator[tuple[Work, Any]]:
    app, found = make_app(settings_for(redis_url, concurrency=THREADS), QUEUES), Work()
    app.task(found.read, name=CALL_RUN)
    app.task(found.advance, name=TURN_ADVANCE)
    with running(app, concurrency=None) as worker:
        try:
            yield found, worker
        finally:
            found.may_end.set()


def ids(server: RedisServer, queue: str) -> list[str]:
    """The ids of the messages on a queue; the last is taken first."""
    items = server.command("LRANGE", queue_key(settings_for(server.url), queue), "0", "-1")
    return [json.loads(item)["headers"]["id"] for item in items]


def push(server: RedisServer, queue: str, *items: str) -> None:
    server.command("LPUSH", queue_key(settings_for(server.url), queue), *items)


def test_a_full_pool_leaves_its_messages_on_their_queue_and_delays_no_other(
    redis_server: RedisServer, work: tuple[Work, Any]
) -> None:
    done, _ = work
    push(redis_server, READ_ONLY_QUEUE, *(read(number) for number in range(5)))
    wait_until(lambda: len(done.reads) == 2, "as many reads run as the pool has threads")
    push(redis_server, TURNS_QUEUE, *(turn(number) for number in range(20)))
    wait_until(lambda: len(done.turns) == 20, "turns run meanwhile")
    assert (len(done.reads), len(ids(redis_server, READ_ONLY_QUEUE))) == (2, 3)
    assert (POOL_THREADS.busy("parallel"), POOL_THREADS.free("parallel")) == (2, 0)
    done.may_end.set()
    wait_until(lambda: len(done.reads) == 5, "the others are taken when threads are free")
    wait_until(lambda: not POOL_THREADS.busy("parallel") + POOL_THREADS.busy("coordinator"), "all threads are free")


def test_one_pool_can_be_paused(redis_server: RedisServer, work: tuple[Work, Any]) -> None:
    done, worker = work
    consumer = worker.consumer
    consumer.consume_if(True, frozenset({"coordinator"}))
    wait_until(lambda: consumer.paused_pools == {"coordinator"}, "its queue is not consumed")
    push(redis_server, TURNS_QUEUE, turn(1))
    push(redis_server, READ_ONLY_QUEUE, read(1))
    wait_until(lambda: done.reads == ["r1"], "the other pool works")
    assert (done.turns, ids(redis_server, TURNS_QUEUE), consumer.consumes) == ([], ["t1.advance.0"], True)
    consumer.consume_if(False)
    wait_until(lambda: not consumer.consumes, "neither is consumed")
    consumer.consume_if(True)
    wait_until(lambda: done.turns == ["t1"], "both work again")
    assert consumer.paused_pools == frozenset()


def test_inspect_shows_the_queues_of_every_pool(work: tuple[Work, Any]) -> None:
    _, worker = work
    asked = worker.app.control.inspect(timeout=5.0, limit=1)
    (queues,) = wait_until(asked.active_queues, "the worker answers").values()
    assert {queue["name"] for queue in queues} == set(QUEUES)
    (stats,) = wait_until(asked.stats, "the worker answers").values()
    assert stats["pool"]["max-concurrency"] == sum(THREADS.values())


def test_a_stop_returns_what_was_requested_before_while_work_still_runs(
    redis_server: RedisServer, work: tuple[Work, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    done, worker = work
    push(redis_server, READ_ONLY_QUEUE, read(1))
    wait_until(lambda: done.reads == ["r1"], "a read runs")
    wait_until(lambda: all(channel._in_poll for channel in channels(worker)), "both pools have requested more")
    monkeypatch.setattr(state, "should_stop", 0)
    wait_until(lambda: worker.pool._threads.is_closed, "it stops, and waits for the read")
    push(redis_server, TURNS_QUEUE, turn(1))
    push(redis_server, READ_ONLY_QUEUE, read(2))
    assert not any(channel._in_poll for channel in channels(worker))
    assert (ids(redis_server, TURNS_QUEUE), ids(redis_server, READ_ONLY_QUEUE)) == (["t1.advance.0"], ["t1.r2.1"])
    done.may_end.set()
    wait_until(lambda: worker.blueprint.state == TERMINATE, "it has stopped")


def channels(worker: Any) -> list[Any]:
    return list(worker.consumer.task_consumer._channels.values())


def test_items_that_found_no_thread_return_to_the_front_of_their_queue(
    redis_server: RedisServer, redis_url: str
) -> None:
    """Continued work took threads after the items were requested."""
    POOL_THREADS.serve({"parallel": 4})
    with make_app(settings_for(redis_url), names.PARALLEL_QUEUES).connection_for_read() as connection:
        channel: Any = connection.channel()
        channel.qos.pool = "parallel"
        taken: list[Any] = []
        channel.basic_consume(READ_ONLY_QUEUE, False, taken.append, "reader")
        channel.client.connection = channel.client.connection_pool.get_connection()  # as kombu's poller does
        channel._brpop_start(timeout=60)
        assert all(POOL_THREADS.try_take("parallel") for _ in range(3))
        push(redis_server, READ_ONLY_QUEUE, *(read(number) for number in range(4)))
        channel._brpop_read()
        assert [message.headers["id"] for message in taken] == ["t1.r0.1"]
        assert not channel.qos.can_consume()
        assert ids(redis_server, READ_ONLY_QUEUE) == ["t1.r3.1", "t1.r2.1", "t1.r1.1"]
        POOL_THREADS.give_back("parallel")
        channel._brpop_start(timeout=60)
        assert POOL_THREADS.try_take("parallel")
        with pytest.raises(Empty):
            channel._brpop_read()
        assert ids(redis_server, READ_ONLY_QUEUE) == ["t1.r3.1", "t1.r2.1", "t1.r1.1"]
        channel.qos._delivered.clear()  # nobody runs what was taken: it is not to be returned at the end
        redis_server.command("DEL", queue_key(settings_for(redis_url), READ_ONLY_QUEUE))
