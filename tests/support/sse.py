"""A reader of server-sent events by the HTML standard, for tests of what sends them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass
class EventReader:
    """A reader that gets bytes as they come.

    It keeps what an EventSource keeps: the last id, and the reconnection time.
    """

    events: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    comments: list[str] = field(default_factory=list[str])
    last_id: str = ""
    retry_ms: int | None = None
    _rest: bytes = b""
    _data: list[str] = field(default_factory=list[str])
    _id: str = ""

    def feed(self, piece: bytes) -> None:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            self._line(line.rstrip(b"\r").decode())

    def lost(self) -> None:
        """Drop an incomplete event, because the connection was lost."""
        self._rest, self._data = b"", []

    @property
    def is_over(self) -> bool:
        return bool(self.events) and self.events[-1]["kind"] == "result"

    def _line(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            self.last_id = self._id
            if self._data:
                self.events.append(json.loads("\n".join(self._data)))
            self._data = []
        elif not name:
            self.comments.append(value)
        elif name == "data":
            self._data.append(value)
        elif name == "id":
            self._id = value
        elif name == "retry":
            self.retry_ms = int(value)


def read(body: bytes) -> list[dict[str, Any]]:
    """Return the events of a whole stream."""
    reader = EventReader()
    reader.feed(body)
    return reader.events
