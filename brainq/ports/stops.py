"""Stops over Redis."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol


class Stops(Protocol):
    """Tells at once that a turn is to stop. Fitted by `state.stops.RedisStops`.

    watch   `callback` gets the reason, at most once a message
    """

    def watch(
        self, session_id: str, turn_id: str, callback: Callable[[str], None]
    ) -> AbstractContextManager[object]: ...
