"""What brainq itself says to a model. %SECONDS% is filled in by the script that ends a turn."""

from __future__ import annotations

from brainq.contracts.message import Message
from brainq.contracts.status import Ending, TraceStatus

OPEN_CALL_TEXTS = {
    Ending.CANCELLED: "Cancelled after %SECONDS% s.",
    Ending.TIMED_OUT: "No result after %SECONDS% s: the turn's deadline passed; it may still have taken effect.",
    Ending.FAILED: "No result: the turn failed before this call ended.",
    Ending.COMPLETED: "No result: the turn ended before this call did.",
}
OPEN_CALL_STATUS = {
    Ending.CANCELLED: TraceStatus.CANCELLED,
    Ending.TIMED_OUT: TraceStatus.TIMED_OUT,
    Ending.FAILED: TraceStatus.CANCELLED,
    Ending.COMPLETED: TraceStatus.CANCELLED,
}
_MARKERS = {
    Ending.CANCELLED: "[The user cancelled this turn before it was answered.]",
    Ending.TIMED_OUT: "[This turn ran out of time before it was answered.]",
    Ending.FAILED: "[This turn failed before it was answered.]",
}


def marker(ending: Ending, turn_id: str, step: int) -> Message | None:
    """What the next turn's model reads about an ending without an answer."""
    text = _MARKERS.get(ending)
    if not text:
        return None
    return Message(role="user", content=text, turn=turn_id, step=step, extra={"note": "ending"})


def outcome_of_review(text: str, turn_id: str) -> Message:
    """What the session's conversation keeps of a review."""
    return Message(
        role="user",
        content=f"[A review of this conversation came to this result:]\n{text}",
        turn=turn_id,
        extra={"note": "review"},
    )
