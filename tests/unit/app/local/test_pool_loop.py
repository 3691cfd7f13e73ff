"""The threads of one pool: how many there are, and which of them waits for the next message."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Any, cast

import pytest

from brainq.adapters.redis.queues import Message, QueueReader
from brainq.app.local.answers import UNREADABLE, Answers, read_doorbell
from brainq.app.local.pool_loop import FinalizerLists, PoolLists, PoolLoop
from brainq.app.wiring import Wiring
from brainq.engine.calls.function_run import Abandon
from brainq.runtime.processes.later_threads import LATER_THREADS, LEFT_FREE
from brainq.runtime.processes.pool_threads import PoolThreads
from tests.support.wait import wait_until


class Queue:
    """A reader without Redis."""

    def __init__(self) -> None:
        self.messages: SimpleQueue[Message] = SimpleQueue()
        self.returned: list[Message] = []
        self.readers = 0
        self.most_readers = 0
        self.fails = 0
        self.awake = threading.Event()

    def put(self, *texts: str) -> None:
        for text in texts:
            self.messages.put(Message("turns", text))

    def pop(self, keys: Sequence[str], wait_s: float) -> Message | None:
        if self.fails:
            self.fails -= 1
            raise ConnectionError("away")
        self.readers += 1
        self.most_readers = max(self.readers, self.most_readers)
        try:
            return self.messages.get(timeout=0.01)
        except Empty:
            return None
        finally:
            self.readers -= 1

    def put_back(self, message: Message) -> None:
        self.returned.append(message)

    def wake(self) -> None: ...
    def close(self) -> None: ...


class Work:
    """Answers that the test gives: each message waits until it is let go."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.go = threading.Semaphore(0)
        self.abandons: dict[str, Abandon] = {}

    def answer(self, text: str, abandon: Abandon | None) -> str:
        self.begun.append(text)
        self.abandons[text] = cast(Abandon, abandon)
        assert self.go.acquire(timeout=60)
        if text == "fails":
            raise SystemExit
        return "done"


class Pool:
    def __init__(self, threads: int) -> None:
        self.queue, self.work, self.budget = Queue(), Work(), PoolThreads({"serial": threads})
        reader, answers = cast(QueueReader, self.queue), cast(Answers, self.work)
        self.loop = PoolLoop("serial", PoolLists(["turns"]), reader, answers, self.budget)
        self.loop.begin()

    def begins(self, count: int) -> None:
        wait_until(lambda: len(self.work.begun) >= count, f"{count} messages begin")

    def free(self) -> int:
        return cast(int, cast(Any, self.budget)._free["serial"])


@pytest.fixture
def pools() -> Iterator[Callable[[int], Pool]]:
    made: list[Pool] = []

    def make(threads: int) -> Pool:
        made.append(Pool(threads))
        return made[-1]

    yield make
    for pool in made:
        pool.loop.drain()
        pool.work.go.release(1000)
        assert pool.loop.join(time.monotonic() + 60)
        pool.loop.close()


def test_messages_run_side_by_side_up_to_the_budget(pools: Callable[[int], Pool]) -> None:
    pool = pools(2)
    pool.queue.put("a", "b", "c")
    pool.begins(2)
    wait_until(lambda: pool.free() == 0, "both threads are taken")
    assert (pool.loop.busy, sorted(pool.work.begun), pool.queue.most_readers) == (2, ["a", "b"], 1)
    pool.work.go.release()
    pool.begins(3)


def test_a_failure_costs_no_thread(pools: Callable[[int], Pool]) -> None:
    pool = pools(1)
    pool.work.go.release(2)
    pool.queue.fails = 1
    pool.queue.put("fails", "b")
    pool.begins(2)
    wait_until(lambda: pool.free() == 1, "the thread is given back")


def test_an_abandoned_call_gives_its_thread_back_once(pools: Callable[[int], Pool]) -> None:
    pool = pools(1)
    pool.queue.put("hangs", "b")
    pool.begins(1)
    pool.work.abandons["hangs"](lambda: "timed_out")
    pool.begins(2)
    assert (pool.loop.busy, pool.free()) == (1, 0)
    pool.work.go.release(2)  # its function ends, late
    wait_until(lambda: pool.loop.busy == 0, "both end")
    assert pool.free() == 1


def test_another_taker_of_the_last_thread_is_waited_for(pools: Callable[[int], Pool]) -> None:
    pool = pools(1)
    assert pool.budget.try_take("serial")  # as one that continues with what it has opened
    pool.queue.put("a")
    assert not pool.work.begun
    pool.budget.give_back("serial")
    pool.begins(1)


def test_a_message_that_nobody_has_begun_is_returned_when_it_drains() -> None:
    queue, work, budget = Queue(), Work(), PoolThreads({"serial": 1})
    loop = PoolLoop("serial", PoolLists(["turns"]), cast(QueueReader, queue), cast(Answers, work), budget)

    def take_the_thread(keys: Sequence[str], wait_s: float) -> Message:
        assert budget.try_take("serial")
        loop.is_draining = True
        return Message("turns", "a")

    queue.pop = take_the_thread
    loop.begin()
    wait_until(lambda: loop.has_ended, "its thread ends")
    assert (queue.returned, work.begun) == ([Message("turns", "a")], [])


def test_later_work_leaves_threads_for_results() -> None:
    lists = FinalizerLists(["finalize", "later", "judges"], ["finalize"], LEFT_FREE + 1)
    try:
        assert lists.readable()[0] == ("finalize", "later", "judges")
        result, later = lists.begin(Message("finalize", "")), lists.begin(Message("later", ""))
        keys, wait_s = lists.readable()
        assert keys == ("finalize",)
        assert wait_s <= 1.0  # then it looks again
        later()
        result()
        assert lists.readable()[0] == ("finalize", "later", "judges")
    finally:
        LATER_THREADS.follow(0, {})


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"headers": {"task": "x"}, "body": "[[1]]"}', '{"headers": 1}'])
def test_what_brainq_did_not_write_is_dropped(text: str) -> None:
    assert read_doorbell(text) is None
    assert Answers(cast(Wiring, None)).answer(text, None) == UNREADABLE


def test_a_task_of_another_program_is_dropped() -> None:
    text = '{"headers": {"task": "shop.mail"}, "body": "[[\\"a\\", \\"b\\", 3]]"}'
    assert Answers(cast(Wiring, None)).answer(text, None) == UNREADABLE
