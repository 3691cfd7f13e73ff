"""A channel's threads: taken for messages, free at once at an ack from any thread. The event loop is woken only while
it waits for one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from brainq.adapters.celery.celery57.event_loop import ThreadSafeQoS
from brainq.runtime.processes.pool_threads import POOL_THREADS


class Channel:
    do_restore = False
    _in_poll = False

    def __init__(self) -> None:
        self.connection: Channel | None = self
        self.woken = 0

    def wake(self) -> None:
        self.woken += 1

    def asks(self, is_polled: bool) -> None:
        self._in_poll = is_polled

    def _restore_at_beginning(self, _message: object) -> None: ...


@pytest.fixture(autouse=True)
def process() -> Iterator[None]:
    yield
    POOL_THREADS.serve({})


def credit(places: int) -> tuple[Any, Channel]:
    POOL_THREADS.serve({"parallel": places})
    channel = Channel()
    qos: Any = ThreadSafeQoS(channel)
    qos.pool = "parallel"
    return qos, channel


def deliver(qos: Any, tag: str) -> bool:
    if not qos.try_take():
        return False
    qos.hold(tag)
    qos.append("message", tag)
    return True


def test_an_ack_wakes_nobody_while_there_is_room() -> None:
    qos, channel = credit(2)
    assert deliver(qos, "t1")
    assert qos.can_consume()
    qos.ack("t1")
    assert channel.woken == 0


def test_an_ack_wakes_the_loop_that_waits_for_room_once() -> None:
    qos, channel = credit(2)
    assert [deliver(qos, tag) for tag in ("t1", "t2", "t3")] == [True, True, False]
    assert not qos.can_consume()
    qos.ack("t1")
    qos.ack("t2")
    assert channel.woken == 1
    assert qos.can_consume()


def test_a_thread_that_continued_work_gives_back_wakes_the_loop_too() -> None:
    qos, channel = credit(1)
    assert POOL_THREADS.try_take("parallel")
    assert not qos.can_consume()
    POOL_THREADS.give_back("parallel")
    assert channel.woken == 1


def test_a_message_gives_its_thread_back_once_however_it_ends() -> None:
    qos, _ = credit(3)
    for tag in ("t1", "t2", "t3"):
        assert deliver(qos, tag)
    qos.ack("t1")
    qos.ack("t1")
    qos.reject("t2", requeue=True)
    qos.let_go("t3")
    qos.ack("t3")
    assert (POOL_THREADS.free("parallel"), POOL_THREADS.busy("parallel")) == (3, 0)


def test_a_reply_that_is_under_way_is_read_though_no_thread_is_left() -> None:
    qos, channel = credit(1)
    channel.asks(True)
    assert POOL_THREADS.try_take("parallel")
    assert qos.can_consume()
    assert not qos.try_take()
    channel.asks(False)
    assert not qos.can_consume()


def test_an_ack_behind_a_closed_channel_wakes_nobody() -> None:
    qos, channel = credit(1)
    assert deliver(qos, "t1")
    assert not qos.can_consume()
    channel.connection = None
    qos.ack("t1")
    assert (channel.woken, POOL_THREADS.free("parallel")) == (0, 1)


def test_a_loop_that_could_not_be_woken_is_woken_by_the_next() -> None:
    qos, channel = credit(2)
    assert [deliver(qos, tag) for tag in ("t1", "t2")] == [True, True]
    assert not qos.can_consume()

    def refuse() -> None:
        raise OSError("no file descriptors")

    wake, channel.wake = channel.wake, refuse  # type: ignore[method-assign]
    with pytest.raises(OSError, match="descriptors"):
        qos.ack("t1")
    channel.wake = wake  # type: ignore[method-assign]
    qos.ack("t2")
    assert channel.woken == 1


def test_without_a_pool_the_prefetch_count_is_the_limit() -> None:
    qos: Any = ThreadSafeQoS(Channel(), 1)
    assert (qos.can_consume(), qos.threads, qos.can_consume_max_estimate()) == (True, 1, 1)
    assert deliver(qos, "t1")
    assert not qos.can_consume()
    qos.ack("t1")
    assert qos.can_consume()


def test_with_many_threads_the_loop_never_waits_in_vain() -> None:
    qos, channel = credit(4)
    woken = threading.Event()
    channel.wake = woken.set  # type: ignore[method-assign]
    taken: list[threading.Thread] = []
    for tag in range(2000):
        while not qos.can_consume():
            assert woken.wait(60), "there was room, and nobody said so"
            woken.clear()
        assert deliver(qos, str(tag))
        thread = threading.Thread(target=qos.ack, args=(str(tag),))
        thread.start()
        taken.append(thread)
    for thread in taken:
        thread.join(60)
    assert POOL_THREADS.busy("parallel") == 0
