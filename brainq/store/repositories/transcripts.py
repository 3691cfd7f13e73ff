"""Transcripts: the whole conversation of a turn."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import bindparam, func, select

from brainq.contracts.message import Message
from brainq.store.conversation import Place, archived, earlier_turns, place_of
from brainq.store.database import Database, Record, Transaction
from brainq.store.statements import ManyRows
from brainq.store.tables import transcripts, turns

_T = transcripts.c
_WHOLE = (
    select(_T.message_json, _T.redacted, _T.step, _T.place, _T.digest)
    .where(_T.turn_id == bindparam("turn"))
    .order_by(_T.step, _T.place, _T.digest)
)
_PAGE = _WHOLE.limit(bindparam("limit")).offset(bindparam("after"))
_OF_STEPS = _WHOLE.where(
    _T.step >= bindparam("first"), _T.step <= bindparam("last"), _T.role.in_(("assistant", "tool"))
)
_COUNT = select(func.count().label("kept")).where(_T.turn_id == bindparam("turn"))
_UNRECORDED = select(turns.c.turn_id).where(
    turns.c.turn_id.in_(bindparam("turns", expanding=True)), turns.c.ended_at.is_(None)
)


class Transcripts:
    """The `transcripts` table."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._rows = ManyRows(transcripts, database.dialect)

    def archive(self, session_id: str, turn_id: str, messages: Sequence[Message], redact: bool) -> None:
        """Keep messages that are about to leave the session's history. Any of them may be kept already.

        They may be of earlier turns, too: those of a turn whose own record is not written yet are kept with
        it, those of any other are there, or were pruned.
        """
        others = earlier_turns(turn_id, messages)
        late = {row["turn_id"] for row in self._db.all(_UNRECORDED, {"turns": others})} if others else set()
        rows = [
            row
            for of_turn in (turn_id, *sorted(late))
            for row in archived(session_id, of_turn, messages, redact)
        ]
        if rows:
            with self._db.transaction() as connection:
                self._rows.insert(connection, rows)

    def write(
        self,
        connection: Transaction,
        *,
        session_id: str,
        turn_id: str,
        messages: Sequence[Message],
        redact: bool,
    ) -> None:
        """Effect: keep the turn's messages; those archived before stay."""
        self._rows.insert(connection, archived(session_id, turn_id, messages, redact))

    def of(self, turn_id: str) -> tuple[Message, ...]:
        """The conversation in order: the user's message, then step by step the input it read, the reply, its tool
        messages in the order of the calls, and notes on it. Empty when there is none, or it is redacted."""
        return _messages(self._db.all(_WHOLE, {"turn": turn_id})) or ()

    def page(self, turn_id: str, limit: int, after: int) -> tuple[tuple[Message, ...] | None, Place | None]:
        """At most `limit` messages behind the first `after`; None where they are redacted. And the place of the last
        one."""
        found = self._db.all(_PAGE, {"turn": turn_id, "limit": limit, "after": after})
        return _messages(found), place_of(found[-1]) if found else None

    def count(self, turn_id: str) -> int:
        """How many messages there are."""
        return int((self._db.first(_COUNT, {"turn": turn_id}) or {"kept": 0})["kept"])

    def of_calls(self, turn_id: str, first_step: int, last_step: int) -> tuple[Message, ...]:
        """The replies of these steps and their tool messages; empty when there are none, or they are redacted."""
        return (
            _messages(self._db.all(_OF_STEPS, {"turn": turn_id, "first": first_step, "last": last_step}))
            or ()
        )


def _messages(found: Sequence[Record]) -> tuple[Message, ...] | None:
    if any(row["redacted"] for row in found):
        return None
    return tuple(Message.model_validate_json(row["message_json"]) for row in found)
