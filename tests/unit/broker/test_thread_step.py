"""A worker's thread: started again when its loop fails, and what is said of that."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

from brainq.broker import thread_step


@pytest.mark.parametrize(("steady_s", "said"), [(60.0, 1), (-1.0, 3)], ids=["at once", "after a long time"])
def test_a_failure_is_told_anew_once_the_loop_had_run_for_long(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, steady_s: float, said: int
) -> None:
    monkeypatch.setattr(thread_step, "RESTART_AFTER_S", 0.0)
    monkeypatch.setattr(thread_step, "STEADY_S", steady_s)
    times = iter(range(4))

    def loop(stopping: threading.Event, worker: object) -> None:
        if next(times) == 3:
            stopping.set()
            return
        raise ConnectionError("away")

    with caplog.at_level(logging.ERROR, "brainq.broker"):
        step: Any = thread_step.thread_step("sweeper", loop)(None)
        step.run(None)
    assert [record.getMessage().count("sweeper failed, and is tried again") for record in caplog.records] == [1] * said
