"""An updater is called regularly until its worker stops, whatever an update raises."""

from __future__ import annotations

import logging
import threading

import pytest

from brainq.engine.upkeep.poller import Poller
from tests.support.wait import wait_until


class Failing:
    """Fails twice, works once, and then its worker stops."""

    def __init__(self) -> None:
        self.stop, self.threads = threading.Event(), list[str]()

    def update(self) -> None:
        self.threads.append(threading.current_thread().name)
        if len(self.threads) < 3:
            raise ConnectionError("home is away")
        if len(self.threads) == 4:
            self.stop.set()


def test_a_look_that_fails_is_logged_once_and_followed_by_another(caplog: pytest.LogCaptureFixture) -> None:
    updater = Failing()
    with caplog.at_level(logging.WARNING, "brainq.upkeep"):
        Poller(updater, "brainq-shares", "look at shares", 0.0).run(updater.stop)
    first, last = (record.getMessage() for record in caplog.records)
    assert first.startswith("look at shares failed and will be tried again why=ConnectionError")
    assert last.startswith("look at shares works again")
    assert last.endswith("times=2")
    assert len(updater.threads) == 4


def test_it_runs_in_a_thread_of_its_own() -> None:
    updater = Failing()
    Poller(updater, "brainq-shares", "look at shares", 0.0).start(updater.stop)
    assert updater.stop.wait(60)
    assert set(updater.threads) == {"brainq-shares"}


def test_a_sweeper_that_is_started_again_has_one_thread_of_each() -> None:
    stop, began = threading.Event(), threading.Semaphore(0)

    class Lasting:
        def update(self) -> None:
            began.release()
            stop.wait(60)

    poller = Poller(Lasting(), "brainq-lasting", "look", 0.0)
    for _ in range(3):
        poller.start(stop)
    assert began.acquire(timeout=60)
    assert [thread.name for thread in threading.enumerate()].count("brainq-lasting") == 1
    stop.set()
    wait_until(lambda: "brainq-lasting" not in [thread.name for thread in threading.enumerate()], "it has ended")
