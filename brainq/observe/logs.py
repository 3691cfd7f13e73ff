"""One logger factory; every line carries ids, none carries content."""

from __future__ import annotations

import logging
import traceback
from typing import Any

from brainq.observe.failures import keep_content_out, stack
from brainq.observe.log_ids import stamped
from brainq.observe.raises import tell_raise


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
            tell_raise(failure, event)
            if self._log.isEnabledFor(logging.DEBUG):
                self._log.debug("%s\n%s", event, stack(failure))
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
        return {**row, **({} if record is None else stamped(record)), **(fields or {})}

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
        said = " ".join(f"{name}={value}" for name, value in stamped(record).items())
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
    keep_content_out()
    handler = logging.StreamHandler()
    handler.setFormatter(_formatter(json_lines=json_lines))
    root = logging.getLogger("brainq")
    root.handlers = [handler]
    root.setLevel(level.upper())
    root.propagate = False
