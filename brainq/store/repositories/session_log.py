"""The log of a session: its messages, its past turns as question and answer, and each turn's number, also
after earlier ones were pruned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column, ScalarSelect, bindparam, case, exists, func, select

from brainq.contracts.conversation import EarlierTurn
from brainq.contracts.message import with_attachment_labels
from brainq.contracts.turn import TurnRequest
from brainq.store.database import Database, Record, Transaction
from brainq.store.statements import insert_or_ignore
from brainq.store.tables import attachments, messages, pruned_sessions, turns
from brainq.store.tables.types import greater_of

# A turn's number: its place among the accepted turns of its session, from 1, also after earlier ones are gone.
_T = turns.c
_KEPT = turns.alias("kept")
_SINCE = turns.alias("since")
_P = pruned_sessions.c


def _number_of_kept(column: Column[Any]) -> ScalarSelect[Any]:
    """Of the nearest earlier turn whose number is written down: as a rule the one just before."""
    return (
        select(column)
        .where(_KEPT.c.session_id == _T.session_id, _KEPT.c.row < _T.row, _KEPT.c.turn_number.is_not(None))
        .order_by(_KEPT.c.row.desc())
        .limit(1)
        .correlate(turns)
        .scalar_subquery()
    )


def _number_of_pruned(column: Column[Any]) -> ScalarSelect[Any]:
    """Of the session's newest turn that was pruned. `store.prune` leaves no turn before it without a number."""
    return select(column).where(_P.session_id == _T.session_id, _P.turn_row < _T.row).correlate(turns).scalar_subquery()


# Numbers grow with rows, so of the two the later one has the greater of both. From there it is counted.
_KNOWN_NUMBER = greater_of(
    func.coalesce(_number_of_kept(_KEPT.c.turn_number), 0), func.coalesce(_number_of_pruned(_P.turn_number), 0)
)
_KNOWN_ROW = greater_of(
    func.coalesce(_number_of_kept(_KEPT.c.row), 0), func.coalesce(_number_of_pruned(_P.turn_row), 0)
)
_COUNTED = (
    select(func.count())
    .select_from(_SINCE)
    .where(
        _SINCE.c.session_id == _T.session_id,
        _SINCE.c.row > _KNOWN_ROW,
        _SINCE.c.row <= _T.row,
        _SINCE.c.state != "rejected",
    )
    .correlate(turns)
    .scalar_subquery()
)
TURN_NUMBER = _KNOWN_NUMBER + _COUNTED
"""For statements over `turns`: the number of a turn that has none yet. Costs as much as the session has turns
that have not ended, not as much as it has turns."""


# A session's past turns as what was asked, with its files, and answered.
_BEYOND_ALL_ROWS = 2**62
_turn_row = select(turns.c.row).where(turns.c.turn_id == bindparam("before")).scalar_subquery()
_last_turns = (
    select(
        turns.c.turn_id,
        turns.c.row,
        case((exists().where(attachments.c.turn_id == turns.c.turn_id), turns.c.request_json)).label("request_json"),
    )
    .join(messages, messages.c.turn_id == turns.c.turn_id)
    .where(
        turns.c.session_id == bindparam("session"),
        turns.c.row < func.coalesce(_turn_row, _BEYOND_ALL_ROWS),
        messages.c.role == "assistant",
        messages.c.seq == 0,
    )
    .order_by(turns.c.row.desc())
    .limit(bindparam("limit"))
    .subquery("last")
)
PAST_TURNS = (
    select(messages.c.turn_id, messages.c.role, messages.c.content, messages.c.redacted, _last_turns.c.request_json)
    .join(_last_turns, _last_turns.c.turn_id == messages.c.turn_id)
    .order_by(_last_turns.c.row, messages.c.row)
)


def read_past_turns(found: Sequence[Record]) -> list[EarlierTurn]:
    """Rows of HISTORY to turns; several messages of one role in a turn are joined by an empty line."""
    by_turn: dict[str, dict[str, list[str]]] = {}
    hidden: set[str] = set()
    requests: dict[str, str] = {}
    for row in found:
        by_turn.setdefault(row["turn_id"], {}).setdefault(row["role"], []).append(row["content"])
        if row["redacted"]:
            hidden.add(row["turn_id"])
        if row["request_json"]:
            requests[row["turn_id"]] = row["request_json"]
    return [
        _past_turn("\n\n".join(contents["user"]), "\n\n".join(contents["assistant"]), requests.get(turn_id))
        for turn_id, contents in by_turn.items()
        if turn_id not in hidden and "user" in contents and "assistant" in contents
    ]


def _past_turn(user: str, assistant: str, request_json: str | None) -> EarlierTurn:
    """The log names the files of a message in its text; the model is shown them beside it again."""
    if request_json is not None:
        request = TurnRequest.model_validate_json(request_json)
        if request.attachments and user == with_attachment_labels(request.user_message, request.attachments):
            return EarlierTurn(request.user_message, assistant, request.attachments)
    return EarlierTurn(user, assistant)


_M = messages.c
_INSERT = insert_or_ignore(messages)
_INSERT_RETURNING = insert_or_ignore(messages, returning="row")
_ROW = select(_M.row).where(_M.turn_id == bindparam("turn"), _M.role == bindparam("said_by"), _M.seq == bindparam("at"))


class Messages:
    """The `messages` table."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._insert = database.pick(_INSERT)
        self._insert_returning = database.pick(_INSERT_RETURNING)

    def log_user(self, request: TurnRequest, redact: bool) -> int:
        """Log the turn's user message (redacted: that there was one); its row, the same when logged again."""
        values = _values(request.session_id, request.turn_id, "user", request.message_with_files, redact)
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

    def write_user(self, connection: Transaction, *, session_id: str, turn_id: str, content: str, redact: bool) -> bool:
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
