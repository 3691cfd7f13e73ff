"""What was compiled lately, bounded by what it may hold and not by how many there are."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class PatternCache(Generic[Value]):
    """Forgets what was asked for least lately. Safe between threads.

    most_bytes   of all that it keeps together; what is larger by itself is not kept
    size         how many bytes a value may come to hold
    """

    def __init__(self, most_bytes: int, size: Callable[[Value], int]) -> None:
        self._most_bytes = most_bytes
        self._size = size
        self._kept: OrderedDict[str, Value] = OrderedDict()
        self._lock = threading.Lock()
        self.held_bytes = 0

    def get(self, key: str, make: Callable[[str], Value]) -> Value:
        """Raises what `make` raises."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        value = make(key)
        size = self._size(value)
        with self._lock:
            if size <= self._most_bytes and key not in self._kept:
                self._kept[key] = value
                self.held_bytes += size
                while self.held_bytes > self._most_bytes:
                    self.held_bytes -= self._size(self._kept.popitem(last=False)[1])
        return value
