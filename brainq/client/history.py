"""History: messages and calls of turns, page by page, from Redis while a turn is live and from SQL afterwards, in the
same form.

With `redact_logs`, content disappears from all of these at one moment: when the turn has ended. An entry that has other
data too, such as a turn or a call, is returned without its content and is marked. A transcript consists of content
only, so it is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from brainq.adapters.sql.repositories.session_log import messages_after
from brainq.adapters.sql.store import Store
from brainq.app.wiring import Wiring
from brainq.app.wiring.state import RedisState
from brainq.client.lists import get_turn
from brainq.contracts.call import ToolTraceEntry
from brainq.contracts.history import HistoryTurn, StartedTurn, TurnCall
from brainq.contracts.ids import child_turn_id, full_call_id
from brainq.contracts.message import Message, ToolCall
from brainq.contracts.rows import WholeTurn
from brainq.contracts.turn import CONTENT_NOT_STORED
from brainq.errors import ContentNotKept

_TRACE_FIELDS = [name for name in ToolTraceEntry.model_fields if name in TurnCall.model_fields]


@dataclass(frozen=True, slots=True)
class History:
    """The pages of turns, messages and calls. Without `redis`, while Redis is unreachable, they
    contain what SQL has."""

    store: Store
    redis: RedisState | None

    def turns(self, session_id: str, limit: int, before: str | None) -> tuple[HistoryTurn, ...]:
        """See `Session.history`."""
        rows = self.store.turns.page(session_id, limit, before)[::-1]
        if not rows:
            return ()
        # Only the first turn of a session takes a greeting.
        oldest = rows[0]
        is_first = bool(oldest.request.greeting) and self.store.turns.number(oldest.row.turn_id) == 1
        live: dict[str, tuple[str, str]] = {}
        if self.redis is not None:
            going_on = [turn.row.turn_id for turn in rows if turn.row.ended_at is None]
            live = self.redis.snapshots.read_brief(session_id, going_on)
        return tuple(_history_turn(turn, is_first and turn is oldest, live.get(turn.row.turn_id)) for turn in rows)

    def transcript(self, session_id: str, turn_id: str, limit: int, after: int) -> tuple[Message, ...]:
        """See `TurnHandle.transcript`."""
        has_ended = self._has_ended(turn_id)
        live: tuple[Message, ...] = ()
        if self.redis is not None and not has_ended:
            # Read Redis first, then SQL: a message is in SQL before it leaves Redis.
            live = self.redis.transcripts.messages(session_id, turn_id)
            has_ended = self._has_ended(turn_id)
        stored, last = self.store.transcripts.page(turn_id, limit, after)
        if stored is None or (after and not stored and self.store.transcripts.page(turn_id, 1, 0)[0] is None):
            when = "it has ended" if has_ended else "a compaction removed messages from Redis"
            raise ContentNotKept(
                f"the messages of turn {turn_id!r} are not kept: {when}, and its brain keeps content out of SQL "
                "(redact_logs)"
            )
        if has_ended or len(stored) == limit:
            return stored
        skipped = 0  # `after` counts the messages in SQL first, so skip only these of the live ones.
        if not stored and after:
            in_sql = self.store.transcripts.count(turn_id)
            if in_sql > after:  # A compaction may just have moved more messages to SQL.
                return self.transcript(session_id, turn_id, limit, after)
            skipped = after - in_sql
            last = self.store.transcripts.page(turn_id, 1, in_sql - 1)[1] if in_sql else None
        only_live = messages_after(turn_id, live, last)
        return (*stored, *only_live[skipped : skipped + limit - len(stored)])

    def calls(self, session_id: str, turn_id: str, limit: int, after: str | None) -> tuple[TurnCall, ...]:
        """See `TurnHandle.calls`."""
        has_ended = self._has_ended(turn_id)
        page: Sequence[ToolTraceEntry] = ()
        live_messages: tuple[Message, ...] = ()
        if self.redis is not None and not has_ended:
            page, live_messages = self.redis.transcripts.calls(session_id, turn_id, limit, after)
            has_ended = self._has_ended(turn_id)
        if has_ended:
            page, live_messages = self.store.traces.page(turn_id, limit, after), ()
        if not page:
            return ()
        # Add SQL's calls last, because a compaction may have left shorter results in Redis.
        stored = self.store.transcripts.of_calls(turn_id, page[0].step, page[-1].step)
        requested, results = _calls_and_results((*live_messages, *stored))
        return tuple(
            _turn_call(session_id, turn_id, entry, requested.get(entry.call_id), results.get(entry.call_id))
            for entry in page
        )

    def _has_ended(self, turn_id: str) -> bool:
        """Return whether the turn has ended, so that SQL has all of it."""
        return get_turn(self.store, turn_id).ended_at is not None


def child_turns(wiring: Wiring, session_id: str, turn_id: str) -> tuple[StartedTurn, ...]:
    """Return a turn's children in the order of its calls. A child's id is derived from its call, so it is not
    stored."""
    trace = wiring.state.calls.trace(session_id, turn_id) or wiring.store.traces.of_turn(turn_id)
    calls = {child_turn_id(turn_id, entry.call_id): entry.call_id for entry in trace}
    rows = {row.turn_id: row for row in wiring.store.turns.rows(list(calls))}
    return tuple(
        StartedTurn(call_id=call_id, turn_id=child, session_id=row.session_id, state=row.state)
        for child, call_id in calls.items()
        if (row := rows.get(child)) is not None
    )


def make_history(wiring: Wiring) -> History:
    return History(wiring.store, None if wiring.redis_away else wiring.state)


def _history_turn(turn: WholeTurn, is_first: bool, live: tuple[str, str] | None) -> HistoryTurn:
    """Build a page's entry. `live` is the state and text of a live turn in Redis."""
    row, request, result = turn.row, turn.request, turn.result
    state, text = live or (row.state, "" if result is None else result.text)
    is_stored = request.user_message != CONTENT_NOT_STORED
    return HistoryTurn(
        turn_id=row.turn_id,
        session_id=row.session_id,
        kind=request.kind,
        state=state,
        stop_reason=row.stop_reason,
        greeting=request.greeting or "" if is_first else "",
        user_message=request.user_message if is_stored else "",
        attachments=request.attachments,
        text=text if is_stored else "",
        is_kept=is_stored,
        accepted_at=row.accepted_at,
        ended_at=row.ended_at,
        brain=request.brain,
        calls=0 if result is None else result.tool_calls,
    )


def _calls_and_results(messages: Iterable[Message]) -> tuple[dict[str, ToolCall], dict[str, Message]]:
    """Return the requests and the results of calls, by call id."""
    requested: dict[str, ToolCall] = {}
    results: dict[str, Message] = {}
    for message in messages:
        if message.role == "tool":
            results[message.call_id] = message
        requested.update((call.id, call) for call in message.calls)
    return requested, results


def _turn_call(
    session_id: str, turn_id: str, entry: ToolTraceEntry, requested: ToolCall | None, result: Message | None
) -> TurnCall:
    # The model did not request a call of step 0, and its result is not part of the conversation.
    is_stored = requested is not None and (result is not None or not entry.status.is_settled)
    return TurnCall(
        id=full_call_id(turn_id, entry.call_id),
        session_id=session_id,
        turn_id=turn_id,
        **{name: getattr(entry, name) for name in _TRACE_FIELDS},
        arguments=requested.arguments if requested is not None and is_stored else None,
        result=result.content if result is not None and is_stored else None,
        attachments=result.attachments if result is not None and is_stored else (),
        is_error=result is not None and result.is_error and is_stored,
        is_kept=is_stored,
    )
