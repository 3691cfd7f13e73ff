"""One logger factory; every line carries ids, none carries content."""

from __future__ import annotations

import logging
from typing import Any


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

    def error(self, event: str, *, failure: BaseException | None = None, **fields: Any) -> None:
        self._write(logging.ERROR, event, fields, failure)

    def _write(
        self, level: int, event: str, fields: dict[str, Any], failure: BaseException | None = None
    ) -> None:
        if self._log.isEnabledFor(level):
            self._log.log(level, event, exc_info=failure, extra={"brainq": fields})


def logger(name: str) -> EventLogger:
    return EventLogger(name)


def configure_logs(level: str = "WARNING", *, json_lines: bool = False) -> None:
    """Render brainq's lines on stderr with structlog, for the processes brainq starts itself."""
    import structlog

    renderer: Any = (
        structlog.processors.JSONRenderer() if json_lines else structlog.dev.ConsoleRenderer(colors=False)
    )

    def unfold(_: Any, __: str, row: Any) -> Any:
        return {**row, **getattr(row.get("_record"), "brainq", {})}

    handler = logging.StreamHandler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[
                unfold,
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.stdlib.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                renderer,
            ]
        )
    )
    root = logging.getLogger("brainq")
    root.handlers = [handler]
    root.setLevel(level.upper())
    root.propagate = False
