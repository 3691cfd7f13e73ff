"""A conversation as its readers see it: turn by turn, from Redis while a turn lives and from SQL later."""

from __future__ import annotations

from datetime import datetime

from brainq.contracts.base import Wire
from brainq.contracts.status import StopReason
from brainq.contracts.turn import TurnKind


class HistoryTurn(Wire):
    """One turn of a session.

    state         as `brainq list` shows it: queued, active, parked, closing, or the ending; `accepted` where only SQL
                  knows the turn yet
    greeting      what the assistant said before the user did, where this is the session's first turn
    user_message  what the user said
    text          the answer; of a live turn what the model said last
    is_kept       False: the brain keeps content out of SQL (`redact_logs`), and both texts are empty
    """

    turn_id: str
    session_id: str
    kind: TurnKind = "chat"
    state: str
    stop_reason: StopReason | None = None
    greeting: str = ""
    user_message: str = ""
    text: str = ""
    is_kept: bool = True
    accepted_at: datetime
    ended_at: datetime | None = None
