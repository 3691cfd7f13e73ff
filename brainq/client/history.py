"""Reading what was said: a session's turns, and one turn's messages with its calls and their results."""

from __future__ import annotations

from brainq.contracts.history import HistoryTurn
from brainq.contracts.message import Message
from brainq.contracts.rows import WholeTurn
from brainq.contracts.turn import NOT_KEPT, TurnRequest
from brainq.errors import ContentNotKept, TurnNotFound
from brainq.wiring import Wiring


def transcript(wiring: Wiring, session_id: str, turn_id: str) -> tuple[Message, ...]:
    """See `TurnHandle.transcript`."""
    row = wiring.store.turns.get(turn_id)
    if row is None:
        raise TurnNotFound(f"no turn {turn_id!r} in SQL; `brainq list` shows the newest ones")
    kept = wiring.store.transcripts.of(turn_id)
    if row.ended_at is None:
        # SQL has what a compaction took out of Redis, and may have what Redis still holds if that one was cut off.
        living = wiring.state.finals.details(session_id, turn_id).messages
        return (*kept, *(message for message in living if message not in kept))
    if kept:
        return kept
    if wiring.store.transcripts.is_redacted(turn_id):
        raise ContentNotKept(
            f"turn {turn_id!r} has ended, and its brain keeps content out of SQL (redact_logs); "
            "its messages can be read while it is live"
        )
    # The finalizer has not written them to SQL yet.
    return wiring.state.finals.details(session_id, turn_id).messages


def turns_of(wiring: Wiring, session_id: str, limit: int, before: str | None) -> tuple[HistoryTurn, ...]:
    """See `Session.history`."""
    found = wiring.store.turns.page(session_id, limit, before)
    return tuple(_history_turn(wiring, turn) for turn in reversed(found))


def _greeting(wiring: Wiring, request: TurnRequest) -> str:
    """Only the first turn of a session takes one."""
    if not request.greeting or wiring.store.turns.number(request.turn_id) != 1:
        return ""
    return request.greeting


def _history_turn(wiring: Wiring, turn: WholeTurn) -> HistoryTurn:
    row, request, result = turn.row, turn.request, turn.result
    state, text = row.state, "" if result is None else result.text
    if row.ended_at is None and (seen := wiring.state.snapshots.of(row.session_id, row.turn_id)) is not None:
        state, text = seen.state.value, seen.text
    is_kept = request.user_message != NOT_KEPT
    return HistoryTurn(
        turn_id=row.turn_id,
        session_id=row.session_id,
        kind=request.kind,
        state=state,
        stop_reason=row.stop_reason,
        greeting=_greeting(wiring, request),
        user_message=request.user_message if is_kept else "",
        text=text if is_kept else "",
        is_kept=is_kept,
        accepted_at=row.accepted_at,
        ended_at=row.ended_at,
    )
