"""Loggers: every line carries ids, none carries content, and what fails again and again is logged once, then
for how long.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from brainq.observe.log_ids import ids_of_record
from brainq.observe.log_redaction import redact_log_records, stack_lines
from brainq.observe.tracebacks import print_user_traceback

# One logger factory; every line carries ids, none carries content.


class EventLogger:
    """Writes `event key=value ...` lines through the standard library, cheap when the level is off.

    structlog renders them where a process asks for it (`configure_logs`); importing brainq does not.
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
        """A `failure` is logged by its type and place; at DEBUG with the frames it came by. Its message never is."""
        failure = fields.pop("failure", None)
        if isinstance(failure, BaseException):
            fields = {**fields, "why": type(failure).__name__, "where": _place(failure)}
            print_user_traceback(failure, event)
            if self._log.isEnabledFor(logging.DEBUG):
                self._log.debug("%s\n%s", event, stack_lines(failure))
        if self._log.isEnabledFor(level):
            said = " ".join(f"{name}={value}" for name, value in fields.items())
            self._log.log(level, "%s %s", event, said, extra={"brainq": {"event": event, **fields}})


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
        # Our lines say their fields in the text for plain handlers; here they are fields of their own.
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
    """structlog drops that of a record it did not make. What ours show of one is in `stacked` already."""
    record: logging.LogRecord = row["_record"]
    if record.exc_info:
        row["exception"] = logging.Formatter().formatException(record.exc_info)
    return row


class WithIds(logging.Formatter):
    """Another formatter's lines; one that was logged while a turn was worked on ends with the ids."""

    def __init__(self, other: logging.Formatter) -> None:
        super().__init__()
        self._other = other

    def format(self, record: logging.LogRecord) -> str:
        """The line, and after it ` turn_id=... session_id=...`."""
        line = self._other.format(record)
        said = " ".join(f"{name}={value}" for name, value in ids_of_record(record).items())
        return f"{line} {said}" if said else line


def configure_library_logs(handlers: list[logging.Handler], *, json_lines: bool) -> None:
    """Have what Celery and the libraries log in a worker carry the ids, too; with `json_lines`, as JSON like ours."""
    for handler in handlers:
        handler.setFormatter(
            _formatter(json_lines=True)
            if json_lines
            else WithIds(handler.formatter or logging.Formatter("%(message)s"))
        )


def configure_logs(level: str = "warning", *, json_lines: bool = False) -> None:
    """Render brainq's lines on stderr with structlog, for the processes brainq starts itself."""
    redact_log_records()
    handler = logging.StreamHandler()
    handler.setFormatter(_formatter(json_lines=json_lines))
    root = logging.getLogger("brainq")
    root.handlers = [handler]
    root.setLevel(level.upper())
    root.propagate = False


# What fails again and again, as while Redis is away: said once, then for how long, then that it is over.

REMIND_S = 60.0


class OutageLog:
    """Of one loop. `what` is its short name, such as `sweep`; `remind_s` is how often a lasting failure is told."""

    def __init__(
        self, log: EventLogger, what: str, *, remind_s: float = REMIND_S, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._log = log
        self._what = what
        self._remind_s = remind_s
        self._now = now
        self._began: float | None = None
        self._told = 0.0
        self._times = 0

    def failed(self, failure: BaseException) -> None:
        """It failed (again)."""
        now = self._now()
        self._times += 1
        if self._began is None:
            self._began = self._told = now
            self._log.error(f"{self._what} failed, and is tried again", failure=failure)
        elif now - self._told >= self._remind_s:
            self._told = now
            for_s = round(now - self._began)
            self._log.error(f"{self._what} still fails", failure=failure, for_s=for_s, times=self._times)

    def worked(self) -> None:
        """It went well."""
        if self._began is not None:
            after_s = round(self._now() - self._began, 1)
            self._log.warning(f"{self._what} works again", after_s=after_s, times=self._times)
        self._began, self._times = None, 0


# Saying that a worker leaves work to others, because it does not have its brain.

_brains_log = logger("brainq.brain.brains")

WARN_EVERY_S = 60.0  # such a worker may be asked all the time while a deployment is rolled out


class MissingBrainLog:
    """Says it once a minute."""

    def __init__(self) -> None:
        self._said_at = float("-inf")

    def say(self, what: str, turn_id: str, brains: Sequence[str]) -> None:
        """Of `what` (`turn`, `call`, `step`) of this turn; `brains` are those of this worker."""
        now = time.monotonic()
        if now - self._said_at >= WARN_EVERY_S:
            self._said_at = now
            _brains_log.warning(
                "left to others: this worker does not have its brain; all workers must load the same BRAINQ_APP",
                what=what,
                turn_id=turn_id,
                brains=", ".join(brains),
            )


def missing_brain_error(brain: str | None, brains: Sequence[str]) -> str:
    """Why a turn of `brain` ended without it, for people and producers."""
    return f"no worker with the brain {brain!r} went on with this turn in time; the brains are {', '.join(brains)}"
