"""Logs: lines with fields and without content, the ids of their turn, and exceptions by type and place."""

from __future__ import annotations

import io
import logging
import sys
import time
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, cast

from brainq.runtime.observe.tracebacks import print_user_traceback
from brainq.runtime.text.failures import failure_name

# The ids of the turn that a thread works on, in each line it logs. They are set where a task enters, so a record costs
# one read.
_ids: ContextVar[dict[str, str] | None] = ContextVar("brainq_log_ids", default=None)
REQUEST = "request_id"
# The loggers whose records are rewritten. An application's own loggers are not.
_REDACTED_LOGGERS = frozenset(
    {"brainq", "celery", "kombu", "amqp", "redis", "sqlalchemy", "alembic", "psycopg", "asyncio", "concurrent"}
)
_CELERY_TRACE = "celery.app.trace"
# These log requests with their content at DEBUG.
_LOGGERS_WITH_CONTENT = ("openai", "anthropic", "httpx", "httpcore")
MAX_FRAMES = 40
REMIND_S = 60.0
WARN_EVERY_S = 60.0  # such a worker may be rung constantly while a deployment is rolled out


@contextmanager
def request_log_ids(request_id: str) -> Generator[None]:
    """Add the id of a gateway's request to all lines logged in this context."""
    token = _ids.set({REQUEST: request_id})
    try:
        yield
    finally:
        _ids.reset(token)


@contextmanager
def turn_log_ids(session_id: str, turn_id: str, call_id: str = "") -> Generator[None]:
    """Add the ids of this turn, and of this call, to all lines logged in this context."""
    ids = {"turn_id": turn_id, "session_id": session_id}
    above = _ids.get()
    if above is not None and REQUEST in above:
        ids[REQUEST] = above[REQUEST]
    token = _ids.set({**ids, "call_id": call_id} if call_id else ids)
    try:
        yield
    finally:
        _ids.reset(token)


def current_log_ids() -> dict[str, str]:
    """Return turn_id, session_id, call_id, and request_id in a gateway. With telemetry, trace_id and span_id are
    included, in W3C's form. Empty if there is neither a turn nor a request."""
    from brainq.runtime.observe.tracing import (
        current_place,  # Import this here, because `brainq --help` does not load OpenTelemetry.
    )

    ids = _ids.get()
    if ids is None:
        return {}
    place = current_place()
    if place is None:
        return ids
    return {**ids, "trace_id": f"{place.trace_id:032x}", "span_id": f"{place.span_id:016x}"}


def stamp_record(record: logging.LogRecord) -> None:
    """Store the ids on a record, in the thread that makes it."""
    if _ids.get() is not None:
        record.brainq_ids = current_log_ids()


def ids_of_record(record: logging.LogRecord) -> dict[str, str]:
    """Return the ids of a record, or none if it belongs to no turn."""
    return getattr(record, "brainq_ids", {})


def stack_lines(failure: BaseException) -> str:
    """Return the frames of an exception and of its causes, one on each line. Messages and variables are left out: they
    may quote a user's text, or hold a password."""
    lines: list[str] = []
    visited: set[int] = set()
    at: BaseException | None = failure
    while at is not None and id(at) not in visited:
        visited.add(id(at))
        lines.append(f"{type(at).__name__}, from" if lines else type(at).__name__)
        lines += _frames(at.__traceback__)
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
    return "\n".join(lines)


def _frames(trace: TracebackType | None) -> list[str]:
    frames = traceback.extract_tb(trace, limit=-MAX_FRAMES)
    return [f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}' for frame in frames]


def redact_log_records() -> None:
    """Make every record of brainq, Celery and the drivers show exceptions like `stack_lines`, and store the ids of its
    turn."""
    for name in _LOGGERS_WITH_CONTENT:
        if logging.getLogger(name).level == logging.NOTSET:
            logging.getLogger(name).setLevel(logging.INFO)
    make = logging.getLogRecordFactory()
    if getattr(make, "keeps_content_out", False):
        return

    def made(*args: Any, **named: Any) -> logging.LogRecord:
        record = make(*args, **named)
        stamp_record(record)
        # The copy of a record is made without an exception.
        if (record.name or "").partition(".")[0] in _REDACTED_LOGGERS:
            _rewrite(record)
        return record

    made.keeps_content_out = True  # type: ignore[attr-defined]
    logging.setLogRecordFactory(made)


def _rewrite(record: logging.LogRecord) -> None:
    failure = record.exc_info[1] if record.exc_info else None
    if failure is not None:
        # A formatter prints the text if there is no exception to format.
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


class EventLogger:
    """A logger that writes lines `event key=value ...` through the standard library. It is cheap if the level is off.

    structlog renders the lines in a process that calls `configure_logs`; importing brainq does not.
    """

    def __init__(self, name: str) -> None:
        self._log = logging.getLogger(name)

    def debug(self, event: str, **fields: Any) -> None:
        self._write(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: Any) -> None:
        self._write(logging.INFO, event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        self._write(logging.WARNING, event, fields)

    def error(self, event: str, **fields: Any) -> None:
        self._write(logging.ERROR, event, fields)

    def _write(self, level: int, event: str, fields: dict[str, Any]) -> None:
        """Write a line. A `failure` is logged by type and place, and at DEBUG with its frames. Its message never is,
        except for a `remedy` of brainq's, which quotes nobody."""
        failure = fields.pop("failure", None)
        if isinstance(failure, BaseException):
            fields = {**fields, "why": failure_name(failure), "where": _place(failure)}
            if remedy := getattr(failure, "remedy", ""):
                fields["remedy"] = remedy
            print_user_traceback(failure, event)
            if self._log.isEnabledFor(logging.DEBUG):
                self._log.debug("%s\n%s", event, stack_lines(failure))
        if self._log.isEnabledFor(level):
            text = " ".join(f"{name}={value}" for name, value in fields.items())
            self._log.log(level, "%s %s", event, text, extra={"brainq": {"event": event, **fields}})


def _place(failure: BaseException) -> str:
    frames = traceback.extract_tb(failure.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""


def logger(name: str) -> EventLogger:
    return EventLogger(name)


def _formatter(*, json_lines: bool) -> logging.Formatter:
    import structlog

    renderer: Any = (
        structlog.processors.JSONRenderer()
        if json_lines
        # The default prints the variables of every frame.
        else structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    )

    def unfold(_: Any, __: str, row: Any) -> Any:
        record = row.get("_record")
        if stacked := getattr(record, "stacked", ""):
            row = {**row, "stack": stacked}
        fields = getattr(record, "brainq", None)
        # brainq's lines have their fields in the text for plain handlers; here they are separate fields.
        return {**row, **({} if record is None else ids_of_record(record)), **(fields or {})}

    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[_with_exception],
        processors=[
            unfold,
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            renderer,
        ],
    )


def _with_exception(_: Any, __: str, row: Any) -> Any:
    """Add the exception of a record that structlog did not make, because it would drop it. brainq's own exceptions are
    already in `stacked`."""
    record: logging.LogRecord = row["_record"]
    if record.exc_info:
        row["exception"] = logging.Formatter().formatException(record.exc_info)
    return row


class WithIds(logging.Formatter):
    """A formatter that adds the turn's ids to the lines of another one."""

    def __init__(self, other: logging.Formatter) -> None:
        super().__init__()
        self._other = other

    def format(self, record: logging.LogRecord) -> str:
        line = self._other.format(record)
        text = " ".join(f"{name}={value}" for name, value in ids_of_record(record).items())
        return f"{line} {text}" if text else line


def configure_library_logs(handlers: list[logging.Handler], *, json_lines: bool) -> None:
    """Add the ids to the log lines of Celery and other libraries in a worker. With `json_lines` they are JSON like
    brainq's."""
    for handler in handlers:
        handler.setFormatter(
            _formatter(json_lines=True)
            if json_lines
            else WithIds(handler.formatter or logging.Formatter("%(message)s"))
        )


def configure_logs(level: str = "warning", *, json_lines: bool = False) -> None:
    """Render brainq's lines on stderr with structlog, for the processes that brainq starts itself."""
    redact_log_records()
    handler = logging.StreamHandler()
    handler.setFormatter(_formatter(json_lines=json_lines))
    root = logging.getLogger("brainq")
    root.handlers = [handler]
    root.setLevel(level.upper())
    root.propagate = False


class _Output(io.FileIO):
    """A file whose writes never fail. Text that cannot be written is lost."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return len(data)


def outlive_full_log() -> None:
    """Drop this process's output while it cannot be written (a full disk, a closed pipe). Without this, Python would
    raise at every print, even in a tool, and end with exit code 120."""
    for name, number in (("stdout", 1), ("stderr", 2)):
        before = getattr(sys, f"__{name}__")
        if before is None or getattr(sys, name) is not before or before.fileno() != number:
            continue  # Another library owns this handler.
        output = io.TextIOWrapper(
            io.BufferedWriter(_Output(number, "w", closefd=False)),
            encoding=before.encoding,
            errors="backslashreplace",
            line_buffering=True,
        )
        setattr(sys, name, output)
        setattr(sys, f"__{name}__", output)


class OutageLog:
    """The log of a failure that repeats in a loop, such as while Redis is down. It logs the first failure, then how
    long it has lasted, then the recovery.

    `what` is the loop's short name, such as `sweep`. `remind_s` is how often a lasting failure is logged.
    """

    def __init__(
        self, log: EventLogger, what: str, *, remind_s: float = REMIND_S, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._log = log
        self._what = what
        self._remind_s = remind_s
        self._now = now
        self._began: float | None = None
        self._logged_at = 0.0
        self._times = 0

    def failed(self, failure: BaseException) -> None:
        """Record a failure."""
        now = self._now()
        self._times += 1
        if self._began is None:
            self._began = self._logged_at = now
            self._log.error(f"{self._what} failed and will be tried again", failure=failure)
        elif now - self._logged_at >= self._remind_s:
            self._logged_at = now
            for_s = round(now - self._began)
            self._log.error(f"{self._what} still fails", failure=failure, for_s=for_s, times=self._times)

    def worked(self) -> None:
        """Record a success."""
        if self._began is not None:
            after_s = round(self._now() - self._began, 1)
            self._log.warning(f"{self._what} works again", after_s=after_s, times=self._times)
        self._began, self._times = None, 0


_brains_log = logger("brainq.engine.brain.brains")


class MissingBrainLog:
    """A log that reports, once a minute, that a worker leaves work to others because it does not have the brain."""

    def __init__(self) -> None:
        self._logged_at = float("-inf")

    def warn(self, what: str, turn_id: str, brains: Sequence[str]) -> None:
        """Log that work of the kind `what` (`turn`, `call`, `step`) was left to others. `brains` are those of this
        worker."""
        now = time.monotonic()
        if now - self._logged_at >= WARN_EVERY_S:
            self._logged_at = now
            _brains_log.warning(
                "left to other workers, because this worker does not have the brain; all workers must load the same "
                "BRAINQ_APP",
                what=what,
                turn_id=turn_id,
                brains=", ".join(brains),
            )


def missing_brain_error(brain: str | None, brains: Sequence[str]) -> str:
    """Return an error text, for people and producers, about a turn that ended because no worker had its brain."""
    return f"no worker with the brain {brain!r} continued this turn in time; the brains are {', '.join(brains)}"
