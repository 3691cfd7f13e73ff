"""Transcripts: the whole conversation of a turn."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import bindparam, select

from brainq.contracts.message import Message
from brainq.store.conversation import archived, earlier_turns
from brainq.store.database import Database, Transaction
from brainq.store.statements import ManyRows
from brainq.store.tables import transcripts, turns

_T = transcripts.c
_OF = (
    select(_T.message_json, _T.redacted)
    .where(_T.turn_id == bindparam("turn"))
    .order_by(_T.step, _T.place, _T.digest)
)
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
            for row in archived(session_id, of_turn, messages, redact, whole=of_turn == turn_id)
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
        self._rows.insert(connection, archived(session_id, turn_id, messages, redact, whole=True))

    def is_redacted(self, turn_id: str) -> bool:
        """Whether the turn's conversation was kept without its content."""
        return any(row["redacted"] for row in self._db.all(_OF, {"turn": turn_id}))

    def of(self, turn_id: str) -> tuple[Message, ...]:
        """The conversation in order: the user's message, then step by step the reply, its tool messages in the
        order of the calls, and what was said before the next step. Empty when there is none, or it is redacted."""
        found = self._db.all(_OF, {"turn": turn_id})
        if any(row["redacted"] for row in found):
            return ()
        return tuple(Message.model_validate_json(row["message_json"]) for row in found)
