"""Sessions in Redis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Sessions(Protocol):
    """Which turn of a session is live ("" for none), and which wait. Fitted by `state.sessions.RedisSessions`.

    waiting_counts   how many turns of the session wait, and how many sessions of its tenant wait for room
    """

    def live(self, session_id: str) -> str: ...
    def waiting(self, session_id: str) -> Sequence[str]: ...
    def waiting_counts(self, session_id: str) -> tuple[int, int]: ...
