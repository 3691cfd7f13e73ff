"""Redaction of logs and urls: exceptions are logged by type and place, never by message, and urls without
their password.
"""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Mapping
from types import TracebackType
from typing import Any, cast
from urllib.parse import urlsplit, urlunsplit

from brainq.observe.log_ids import stamp_record

# Exceptions in logs: their types and the places they came by. Never their messages, nor what variables held.
#
# A message may quote what a user wrote, a variable may hold a password, and libraries log exceptions whole.

# Whose records are rewritten. An application's own loggers say what the application wants.
_REDACTED_LOGGERS = frozenset(
    {"brainq", "celery", "kombu", "amqp", "redis", "sqlalchemy", "alembic", "psycopg", "asyncio", "concurrent"}
)

_CELERY_TRACE = "celery.app.trace"
# They log requests with their content at DEBUG.
_LOGGERS_WITH_CONTENT = ("openai", "anthropic", "httpx", "httpcore")

MAX_FRAMES = 40


def stack_lines(failure: BaseException) -> str:
    """The frames of an exception and of what it came from, a line each."""
    lines: list[str] = []
    seen: set[int] = set()
    at: BaseException | None = failure
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        lines.append(f"{type(at).__name__}, from" if lines else type(at).__name__)
        lines += _frames(at.__traceback__)
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
    return "\n".join(lines)


def _frames(trace: TracebackType | None) -> list[str]:
    frames = traceback.extract_tb(trace, limit=-MAX_FRAMES)
    return [f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}' for frame in frames]


def redact_log_records() -> None:
    """Have every record of ours, of Celery's and of the drivers' show of an exception what `stack` does, and every
    record know the turn that it was made for."""
    for name in _LOGGERS_WITH_CONTENT:
        if logging.getLogger(name).level == logging.NOTSET:
            logging.getLogger(name).setLevel(logging.INFO)
    make = logging.getLogRecordFactory()
    if getattr(make, "keeps_content_out", False):
        return

    def made(*args: Any, **given: Any) -> logging.LogRecord:
        record = make(*args, **given)
        stamp_record(record)
        if (record.name or "").partition(".")[0] in _REDACTED_LOGGERS:  # a copy of a record is made without one
            _rewrite(record)
        return record

    made.keeps_content_out = True  # type: ignore[attr-defined]
    logging.setLogRecordFactory(made)


def _rewrite(record: logging.LogRecord) -> None:
    failure = record.exc_info[1] if record.exc_info else None
    if failure is not None:
        # A formatter prints the text where there is no exception to be formatted.
        record.exc_info, record.exc_text = None, stack_lines(failure)
        record.stacked = record.exc_text
    if isinstance(record.args, Mapping):
        if record.name == _CELERY_TRACE and record.levelno > logging.INFO and "exc" in record.args:
            known = cast("Mapping[str, Any]", record.args)
            record.args = {**known, "exc": str(known["exc"]).partition("(")[0]}
    elif record.args:
        record.args = tuple(_plain(value) for value in record.args)


def _plain(value: object) -> object:
    return type(value).__name__ if isinstance(value, BaseException) else value


# Urls as they may be shown: without their password.

_PASSWORD_IN_QUERY = re.compile(r"(?i)\b(password|sslpassword)=[^&]*")


def without_password(url: str) -> str:
    """`url` for a screen or a log: its password, also one in the query, is replaced by stars."""
    try:
        parts = urlsplit(url)
        password = parts.password
    except ValueError:
        return "an address that cannot be read"
    place = parts.netloc
    if password:
        place = f"{parts.username or ''}:***@{place.rpartition('@')[2]}"
    query = _PASSWORD_IN_QUERY.sub(r"\1=***", parts.query)
    if (place, query) == (parts.netloc, parts.query):
        return url
    return urlunsplit((parts.scheme, place, parts.path, query, parts.fragment))
