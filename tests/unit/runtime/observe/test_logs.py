"""What a log line says of a failure."""

from __future__ import annotations

import contextvars
import inspect
import io
import json
import logging
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from brainq.engine.upkeep.due_checks import DueChecks
from brainq.engine.upkeep.sweeper import Sweeper
from brainq.runtime.observe.logs import (
    OutageLog,
    configure_library_logs,
    configure_logs,
    current_log_ids,
    logger,
    turn_log_ids,
)
from brainq.runtime.observe.tracing import traceparent_of
from tests.support.spans import recording
from tests.support.stand_in import stand_in


@pytest.mark.parametrize("level", ["info", "warning", "error"])
def test_a_failures_message_is_in_no_line_by_default(level: str, caplog: pytest.LogCaptureFixture) -> None:
    """It may quote what a user wrote."""
    caplog.set_level(logging.INFO, "brainq.test")
    try:
        raise ValueError("my password is hunter2")
    except ValueError as failure:
        getattr(logger("brainq.test"), level)("it broke", failure=failure, turn_id="t1")
    assert "it broke turn_id=t1 why=ValueError where=" in caplog.text
    assert "hunter2" not in caplog.text


# A lasting failure is said once, then now and then, then that it is over.


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
        "sweep failed and will be tried again",
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

        lapse_gone = take_comparing = due

    parts: dict[str, Any] = dict.fromkeys(inspect.signature(DueChecks).parameters, Away())
    parts["every_s"] = 0.0
    Sweeper(every_s=0.0, state=stand_in(Away()), checks=DueChecks(**parts), comparisons=(), due_work=()).run(stop)
    assert len(looks) >= 20
    said = Counter(record.getMessage().partition(" why=")[0] for record in caplog.records)
    assert said == {
        f"sweep ({part}) failed and will be tried again": 1
        for part in ("find processes that are gone", "check turns", "check lanes", "take turns at comparing")
    }


# Each line that is logged while a turn is worked on has the turn's ids, of whatever library, in both formats.


OURS = "brainq.test_ids"
THEIRS = "somebodys.library"


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    factory, ours = logging.getLogRecordFactory(), logging.getLogger("brainq")
    kept = ours.handlers, ours.level, ours.propagate
    yield
    logging.setLogRecordFactory(factory)
    ours.handlers, ours.propagate = kept[0], kept[2]
    ours.setLevel(kept[1])


@pytest.fixture
def theirs() -> Iterator[logging.StreamHandler[io.StringIO]]:
    """What Celery would have put on the root logger."""
    handler = logging.StreamHandler(io.StringIO())
    handler.setFormatter(logging.Formatter("[%(levelname)s] %(message)s"))
    logging.getLogger(THEIRS).addHandler(handler)
    yield handler
    logging.getLogger(THEIRS).removeHandler(handler)


def test_our_lines_have_the_ids(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("info", json_lines=True)
    with turn_log_ids("s1", "turn-1", "c1-0"):
        logger(OURS).info("said", step=2)
    logger(OURS).info("later")
    said, later = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert {**said, "timestamp": ""} == {
        "event": "said",
        "turn_id": "turn-1",
        "session_id": "s1",
        "call_id": "c1-0",
        "step": 2,
        "level": "info",
        "timestamp": "",
    }
    assert "turn_id" not in later


def test_a_line_that_names_a_turn_itself_keeps_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("info")
    with turn_log_ids("s1", "turn-1"):
        logger(OURS).info("about a child", turn_id="turn-2")
    line = capsys.readouterr().err
    assert "turn_id=turn-2" in line
    assert "turn-1" not in line
    assert "session_id=s1" in line


def test_a_librarys_lines_end_with_them(theirs: logging.StreamHandler[io.StringIO]) -> None:
    configure_logs("info")
    configure_library_logs([theirs], json_lines=False)
    with turn_log_ids("s1", "turn-1"):
        logging.getLogger(THEIRS).warning("slow by %s s", 3)
    logging.getLogger(THEIRS).warning("idle")
    assert theirs.stream.getvalue().splitlines() == [
        "[WARNING] slow by 3 s turn_id=turn-1 session_id=s1",
        "[WARNING] idle",
    ]


def test_or_are_json_like_ours(theirs: logging.StreamHandler[io.StringIO]) -> None:
    configure_logs("info", json_lines=True)
    configure_library_logs([theirs], json_lines=True)
    try:
        raise ValueError("no")
    except ValueError:
        with turn_log_ids("s1", "turn-1"):
            logging.getLogger(THEIRS).exception("slow by %s s", 3)
    line = json.loads(theirs.stream.getvalue())
    assert (line["event"], line["turn_id"], line["level"]) == ("slow by 3 s", "turn-1", "error")
    assert line["exception"].endswith("ValueError: no")


def test_with_telemetry_on_they_name_the_open_span() -> None:
    with recording() as recorder, turn_log_ids("s1", "turn-1"):
        assert set(current_log_ids()) == {"turn_id", "session_id"}
        with recorder.provider.get_tracer("shop").start_as_current_span("one") as span:
            ids = current_log_ids()
            assert traceparent_of(span.get_span_context()) == f"00-{ids['trace_id']}-{ids['span_id']}-01"


def test_a_thread_that_copies_the_context_has_them() -> None:
    found: list[dict[str, str]] = []
    with turn_log_ids("s1", "turn-1"):
        run = contextvars.copy_context().run
        thread = threading.Thread(target=lambda: found.append(run(current_log_ids)))
        thread.start()
        thread.join()
    assert found == [{"turn_id": "turn-1", "session_id": "s1"}]
    assert current_log_ids() == {}
