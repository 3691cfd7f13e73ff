"""A lasting failure is said once, then now and then, then that it is over."""

from __future__ import annotations

import inspect
import logging
import threading
from collections import Counter
from typing import Any

import pytest

from brainq.observe.logs import OutageLog, logger
from brainq.upkeep.sweeper import Sweeper


def test_it_is_said_once_then_how_long_then_that_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    outage = OutageLog(logger("brainq.test"), "sweep", remind_s=60.0, now=lambda: now[0])
    outage.worked()
    for second in range(150):
        now[0] = float(second)
        outage.failed(ConnectionError("away"))
    outage.worked()
    outage.worked()
    said = [
        record.getMessage().partition(" why=")[0].partition(" for_s")[0]
        for record in caplog.records
        if record.levelno > logging.INFO
    ]
    assert said == [
        "sweep failed, and is tried again",
        "sweep still fails",
        "sweep still fails",
        "sweep works again after_s=149.0 times=150",
    ]
    caplog.clear()
    outage.failed(ConnectionError("away"))
    assert "sweep failed" in caplog.text


def test_a_sweeper_whose_redis_is_away_says_so_once_for_each_of_its_parts(caplog: pytest.LogCaptureFixture) -> None:
    stop = threading.Event()
    looks: list[int] = []

    class Away:
        def due(self, *_given: object, **_named: object) -> None:
            looks.append(1)
            if len(looks) >= 20:
                stop.set()
            raise ConnectionError("away")

        lapse_gone = lapsed = take_comparing = compare = heal = due

    parts: dict[str, Any] = dict.fromkeys(inspect.signature(Sweeper).parameters, Away())
    parts["every_s"] = 0.0
    Sweeper(**parts).run(stop)
    assert len(looks) >= 20
    said = Counter(record.getMessage().partition(" why=")[0] for record in caplog.records)
    assert said == {
        f"sweep ({part}) failed, and is tried again": 1
        for part in ("find processes that are gone", "look at turns", "look at lanes", "take turns at comparing")
    }
