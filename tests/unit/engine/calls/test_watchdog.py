"""What is due is done, in order, and what is no longer wanted is not."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from brainq.engine.calls.executor import Watch, Watchdog
from tests.support.wait import wait_until


@pytest.fixture
def watchdog() -> Iterator[Watchdog]:
    watchdog = Watchdog()
    yield watchdog
    watchdog.close()


def in_s(seconds: float, act: Any) -> Watch:
    return Watch(time.monotonic() + seconds, act)


def test_what_is_due_earlier_is_done_earlier_whenever_it_was_added(watchdog: Watchdog) -> None:
    done: list[str] = []
    watchdog.add(in_s(600.0, lambda: done.append("much later")))
    watchdog.add(in_s(1.0, lambda: done.append("second")))
    watchdog.add(in_s(0.01, lambda: done.append("first")))
    wait_until(lambda: len(done) == 2, "both are done")
    assert done == ["first", "second"]


def test_a_watch_can_be_made_due_earlier_and_is_done_once(watchdog: Watchdog) -> None:
    done: list[str] = []
    watch = in_s(0.3, lambda: done.append("done"))
    watchdog.add(watch)
    watch.due = time.monotonic()
    watchdog.add(watch)
    wait_until(lambda: done, "it is done")
    after: list[str] = []
    watchdog.add(in_s(0.4, lambda: after.append("after")))
    wait_until(lambda: after, "its first time has passed, too")
    assert done == ["done"]


def test_what_is_no_longer_wanted_is_not_done(watchdog: Watchdog) -> None:
    done: list[str] = []
    watch = in_s(600.0, lambda: done.append("unwanted"))
    watchdog.add(watch)
    watch.act = None
    watch.due = time.monotonic()
    watchdog.add(watch)
    watchdog.add(in_s(0.1, lambda: done.append("wanted")))
    wait_until(lambda: done, "the other is done")
    assert done == ["wanted"]


def test_one_that_takes_long_keeps_no_other_waiting(watchdog: Watchdog, release: threading.Event) -> None:
    done: list[str] = []
    watchdog.add(in_s(0.0, lambda: release.wait(60.0)))
    watchdog.add(in_s(0.01, lambda: done.append("done")))
    wait_until(lambda: done, "it did not wait")


def test_calls_that_end_in_time_leave_nothing_behind(watchdog: Watchdog) -> None:
    kept: Any = watchdog
    watchdog.add(in_s(600.0, bool))
    for _ in range(3000):
        watch = in_s(3600.0, bool)
        watchdog.add(watch)
        watch.act = None
    assert len(kept._heap) <= 1025


def test_it_is_waked_by_few_calls(watchdog: Watchdog, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: Any = watchdog
    watchdog.add(in_s(600.0, bool))
    waked: list[bool] = []
    monkeypatch.setattr(kept._changed, "notify", lambda: waked.append(True))
    for _ in range(100):
        watchdog.add(in_s(601.0, bool))
    assert waked == []


def test_without_a_thread_to_spare_it_does_it_itself(watchdog: Watchdog, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    watchdog.add(in_s(600.0, bool))
    start = threading.Thread.start

    def none_to_spare(thread: threading.Thread) -> None:
        if thread.name == "brainq-cut":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", none_to_spare)
    watchdog.add(in_s(0.0, lambda: done.append(threading.current_thread().name)))
    wait_until(lambda: done, "it is done")
    assert done == ["brainq-watchdog"]


def test_a_watch_that_was_moved_to_a_later_time_is_not_done_before(watchdog: Watchdog) -> None:
    done: list[str] = []
    watch = in_s(0.05, lambda: done.append("moved"))
    watchdog.add(watch)
    watchdog.move(watch, time.monotonic() + 600.0)
    watchdog.add(in_s(0.2, lambda: done.append("other")))
    wait_until(lambda: "other" in done, "its first time has passed")
    assert done == ["other"]
    watchdog.move(watch, time.monotonic())
    wait_until(lambda: done == ["other", "moved"], "it is done when it is due")
