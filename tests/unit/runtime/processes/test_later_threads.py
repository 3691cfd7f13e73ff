"""Some of a finalizer's threads are left to what leads to results."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
from kombu.transport import virtual

from brainq.adapters.celery.celery57.event_loop import ThreadSafeQoS
from brainq.runtime.processes import later_threads
from brainq.runtime.processes.later_threads import LaterThreads


def following(threads: int = 4, **messages: tuple[str, float]) -> LaterThreads:
    found = LaterThreads()
    found.follow(threads, messages)
    return found


@pytest.mark.parametrize(("threads", "most"), [(8, 6), (4, 2), (3, 1), (2, 1), (1, 1)])
def test_two_threads_are_left_and_one_does_what_is_later_at_least(threads: int, most: int) -> None:
    assert following(threads).free == most


def test_where_no_queue_is_read_nothing_is_bounded() -> None:
    found = LaterThreads()
    assert [found.try_enter(f"t{number}") for number in range(99)] == [True] * 99


def test_a_visit_goes_on_while_a_thread_is_left_for_it() -> None:
    found = following(4)
    assert [found.try_enter(turn) for turn in ("t1", "t2", "t3")] == [True, True, False]
    found.leave("t3")
    assert not found.free
    found.leave("t1")
    assert found.try_enter("t3")


def test_one_that_is_there_already_counts_though_no_thread_is_left() -> None:
    found = following(4)
    for turn in ("t1", "t2", "t3"):
        found.enter(turn)
    found.leave("t1")
    assert not found.free
    found.leave("t2")
    assert found.free == 1


def test_a_turn_whose_message_was_taken_and_whose_visit_has_begun_counts_once() -> None:
    found = following(4, tag=("t1", 0.0))
    found.enter("t1")
    assert found.free == 1
    found.leave("t1")
    assert found.free == 1, "the message is not acknowledged yet"


def test_it_looks_again_after_as_long_as_the_newest_has_run(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    monkeypatch.setattr(later_threads, "time", SimpleNamespace(monotonic=lambda: now))
    looks = [following(4, old=("t1", now - 60), new=("t2", now - ago)).looks_again_s() for ago in (0, 0.25, 9)]
    assert looks == pytest.approx([0.005, 0.25, 1.0])


@pytest.mark.parametrize("end", ["ack", "reject"])
def test_a_message_counts_until_it_is_acknowledged_or_refused(end: str) -> None:
    channel: Any = SimpleNamespace(do_restore=False)
    credit: virtual.QoS | Any = ThreadSafeQoS(channel, 4)
    credit.append("message", "tag")
    credit.note_later("tag", "t1")
    found = LaterThreads()
    found.follow(4, credit.later)
    assert found.free == 1
    getattr(credit, end)("tag")
    assert found.free == 2
