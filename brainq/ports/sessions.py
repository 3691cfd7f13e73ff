"""Sessions in Redis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Sessions(Protocol):
    """Which turn of a session is live ("" for none), and which wait. Fitted by `state.sessions.RedisSessions`."""

    def live(self, session_id: str) -> str: ...
    def waiting(self, session_id: str) -> Sequence[str]: ...
