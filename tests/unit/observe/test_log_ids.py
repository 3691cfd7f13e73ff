"""Each line that is logged while a turn is worked on has the turn's ids, of whatever library, in both formats."""

from __future__ import annotations

import contextvars
import io
import json
import logging
import threading
from collections.abc import Iterator

import pytest

from brainq.observe.logs import configure_library_logs, configure_logs, current_log_ids, logger, turn_log_ids
from brainq.observe.tracing import traceparent_of
from tests.support.spans import recording

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
