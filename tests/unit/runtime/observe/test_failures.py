"""No log line, of whatever level, logger and format, quotes an exception's message or what a variable held."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest

from brainq.runtime.observe.logs import configure_logs, logger, redact_log_records, stack_lines

SECRET = "hunter2"


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    factory = logging.getLogRecordFactory()
    yield
    logging.setLogRecordFactory(factory)


@pytest.fixture
def lines() -> io.StringIO:
    return io.StringIO()


def fail(password: str) -> None:
    try:
        raise KeyError(f"no row for {password}")
    except KeyError as cause:
        raise ConnectionError(f"postgresql://me:{password}@db refused") from cause


@pytest.mark.parametrize("json_lines", [False, True])
@pytest.mark.parametrize("level", ["debug", "info"])
def test_our_own_lines(capsys: pytest.CaptureFixture[str], level: str, json_lines: bool) -> None:
    configure_logs(level, json_lines=json_lines)
    try:
        fail(SECRET)
    except ConnectionError as failure:
        logger("brainq.test").error("sweep failed", failure=failure)
        logging.getLogger("brainq.test").exception("%s failed: %s", "it", failure)
    text = capsys.readouterr().err
    assert SECRET not in text
    assert "sweep failed" in text
    assert "ConnectionError" in text
    assert "KeyError" in text
    assert "test_failures.py" in text


def test_lines_of_celery_and_of_drivers(lines: io.StringIO) -> None:
    redact_log_records()
    redact_log_records()
    handler = logging.StreamHandler(lines)
    names = ("celery.app.trace", "kombu", "sqlalchemy.pool", "psycopg", "redis")
    for name in names:
        logging.getLogger(name).addHandler(handler)
    try:
        fail(SECRET)
    except ConnectionError as failure:
        context = {"name": "brainq.turn.advance", "exc": repr(failure)}
        logging.getLogger("celery.app.trace").error("Task %(name)s raised: %(exc)s", context, exc_info=True)
        for name in names[1:]:
            logging.getLogger(name).error("it failed: %r", failure, exc_info=failure)
    for name in names:
        logging.getLogger(name).removeHandler(handler)
    text = lines.getvalue()
    assert SECRET not in text
    assert "Task brainq.turn.advance raised: ConnectionError" in text
    assert text.count("in fail") >= 2 * len(names)


def test_an_applications_own_loggers_say_what_they_want(lines: io.StringIO) -> None:
    redact_log_records()
    handler = logging.StreamHandler(lines)
    own = logging.getLogger("shop.agent")
    own.addHandler(handler)
    try:
        fail("whatever")
    except ConnectionError:
        own.exception("mine")
    own.removeHandler(handler)
    assert "postgresql://me:whatever" in lines.getvalue()


def test_an_endless_chain_of_causes_ends() -> None:
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    assert stack_lines(first).count("ValueError") == 2
