"""How sessions are told."""

from __future__ import annotations

from datetime import datetime

from brainq.contracts.history import HistoryTurn
from brainq.contracts.listing import ListedSession
from brainq.http.bodies.base import Answer


class SessionPage(Answer):
    """Sessions, the one with the newest turn first; `next` as of `TurnPage`."""

    sessions: tuple[ListedSession, ...]
    next: str | None


class Waiting(Answer):
    """A turn that waits for the live one; place 1 is next."""

    turn_id: str
    place: int
    created_at: datetime


class SessionSeen(Answer):
    """How a session stands: its live turn, those that wait, and the readiness flags that no turn has taken.

    why_paused   by whom, and what was said; null: it is not paused
    """

    session_id: str
    live: str | None
    waiting: tuple[Waiting, ...]
    is_paused: bool
    why_paused: str | None
    flags: tuple[str, ...]


class History(Answer):
    """Turns of a session, the oldest first; `before` the first of them is the page before."""

    session_id: str
    turns: tuple[HistoryTurn, ...]
