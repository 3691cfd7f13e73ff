"""Messages: the event log of what was said."""

from __future__ import annotations

from sqlalchemy import bindparam, select

from brainq.contracts.turn import TurnRequest
from brainq.store.database import Database, Transaction
from brainq.store.statements import insert_or_ignore
from brainq.store.tables import messages

_M = messages.c
_INSERT = insert_or_ignore(messages)
_INSERT_RETURNING = insert_or_ignore(messages, returning="row")
_ROW = select(_M.row).where(
    _M.turn_id == bindparam("turn"), _M.role == bindparam("said_by"), _M.seq == bindparam("at")
)


class Messages:
    """The `messages` table."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._insert = database.pick(_INSERT)
        self._insert_returning = database.pick(_INSERT_RETURNING)

    def log_user(self, request: TurnRequest, redact: bool) -> int:
        """Log the turn's user message (redacted: that there was one); its row, the same when logged again."""
        values = _values(request.session_id, request.turn_id, "user", request.said, redact)
        while True:
            found = self._db.write_returning(self._insert_returning, values) or self._db.first(
                _ROW, {"turn": request.turn_id, "said_by": "user", "at": 0}
            )
            if found is not None:  # None: deleted between the two statements
                return int(found["row"])

    def user_row(self, turn_id: str) -> int | None:
        """The row of the turn's user message; None before it was logged."""
        found = self._db.first(_ROW, {"turn": turn_id, "said_by": "user", "at": 0})
        return None if found is None else int(found["row"])

    def write_user(
        self, connection: Transaction, *, session_id: str, turn_id: str, content: str, redact: bool
    ) -> bool:
        """Effect: log the user's message of a turn that never began; False if it was logged before."""
        values = _values(session_id, turn_id, "user", content, redact)
        return connection.write(self._insert, values) == 1

    def write_assistant(
        self, connection: Transaction, *, session_id: str, turn_id: str, content: str, redact: bool = False
    ) -> bool:
        """Effect: log the turn's answer; False if it was logged before."""
        values = _values(session_id, turn_id, "assistant", content, redact)
        return connection.write(self._insert, values) == 1


def _values(session_id: str, turn_id: str, role: str, content: str, redact: bool) -> dict[str, object]:
    return {
        "session_id": session_id,
        "turn_id": turn_id,
        "role": role,
        "seq": 0,
        "content": "" if redact else content,
        "redacted": redact,
    }
