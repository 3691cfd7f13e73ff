"""What was said and done as its readers see it: turns and calls, from Redis while a turn lives and from SQL later."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from brainq.contracts.attachment import Attachment
from brainq.contracts.base import Wire
from brainq.contracts.effect import Effect
from brainq.contracts.status import StopReason, TraceStatus
from brainq.contracts.turn import TurnKind


class HistoryTurn(Wire):
    """One turn of a session.

    state         as `brainq list` shows it: queued, active, parked, closing, or the ending; `accepted` where only SQL
                  knows the turn yet
    brain         the one that the turn names; None in a deployment of one
    greeting      what the assistant said before the user did, where this is the session's first turn
    user_message  what the user said
    attachments   images and files of the user's message
    text          the answer; of a live turn what the model said last
    calls         how many calls it made; 0 before it has ended
    is_kept       False: the brain keeps content out of SQL (`redact_logs`), and both texts are empty
    """

    turn_id: str
    session_id: str
    kind: TurnKind = "chat"
    state: str
    stop_reason: StopReason | None = None
    greeting: str = ""
    user_message: str = ""
    attachments: tuple[Attachment, ...] = ()
    text: str = ""
    is_kept: bool = True
    accepted_at: datetime
    ended_at: datetime | None = None
    brain: str | None = None
    calls: int = 0


class TurnCall(Wire):
    """One call of a turn, with what it was given and what it gave back. Instants are Redis time in ms; 0 means not yet.

    id         unique over all turns, `TURN-CALL`; `call_id` is unique in its turn
    step       the model call that asked for it; 0: the runtime did, before the first (memory, the context pack)
    attempt    how often it was asked for, after workers that were lost
    arguments  as the model gave them: an object, or text that is none; None where they are not kept
    result     the text that the model reads; None while there is none, or where it is not kept
    attachments   images and files of the result
    is_error   what the model is told of it
    repairs    mends of the arguments that were tried
    detail     why it ended so, in a word or two
    park       what a parked call waits for: approval, hold, outside, child or client; empty for any other
    is_kept    False: `arguments` and `result` are kept no more (`redact_logs`), or never were (step 0)
    """

    id: str
    session_id: str
    turn_id: str
    call_id: str
    tool: str
    effect: Effect
    status: TraceStatus
    step: int
    wave: int
    attempt: int = 1
    arguments: dict[str, Any] | str | None = None
    result: str | None = None
    attachments: tuple[Attachment, ...] = ()
    is_error: bool = False
    is_kept: bool = True
    dispatched_at_ms: int = 0
    started_at_ms: int = 0
    ended_at_ms: int = 0
    latency_ms: int = 0
    repairs: int = 0
    retryable: bool = False
    detail: str = ""
    park: str = ""
