"""Names that somebody outside chooses, as values of a label: so many, and the rest is one."""

from __future__ import annotations

import threading

OTHER = "other"
MOST_CHARS = 100


class Names:
    """The first `most` different names that a process meets are themselves; all others are `other`."""

    def __init__(self, most: int = 50) -> None:
        self._most = most
        self._known: set[str] = set()
        self._lock = threading.Lock()

    def of(self, name: str) -> str:
        with self._lock:
            if name in self._known:
                return name
            if len(self._known) >= self._most or len(name) > MOST_CHARS or not name.isprintable():
                return OTHER
            self._known.add(name)
            return name


_brains, _client_tools, _models, _errors = Names(), Names(), Names(), Names()


def brain_name(name: str) -> str:
    """A foreign submit may name any brain."""
    return _brains.of(name)


def model_name(name: str) -> str:
    """A submit may name any model."""
    return _models.of(name)


def error_name(name: str) -> str:
    """A provider of the user's own may call its errors what it likes."""
    return _errors.of(name)


def client_tool_name(name: str) -> str:
    """A client brings tools of its own with each turn."""
    return _client_tools.of(name)
