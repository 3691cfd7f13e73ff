"""The log of a session: its messages, its past turns as question and answer, and the numbers of its turns, which stay
correct after pruning. Also the transcript of each turn: the identity and the order of its messages.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column, ScalarSelect, bindparam, case, exists, func, select

from brainq.adapters.sql.database import Database, Transaction
from brainq.adapters.sql.prepared import Record
from brainq.adapters.sql.statements import ManyRows, insert_or_ignore
from brainq.adapters.sql.tables import attachments, messages, pruned_sessions, transcripts, turns
from brainq.adapters.sql.tables.types import greater_of
from brainq.adapters.sql.text import sql_json, sql_text
from brainq.contracts.conversation import EarlierTurn
from brainq.contracts.message import Message, with_attachment_labels
from brainq.contracts.turn import TurnRequest

# A turn's number is its position among the accepted turns of its session, from 1, and stays after earlier turns are
# deleted.
_T = turns.c
_KEPT = turns.alias("kept")
_SINCE = turns.alias("since")
_P = pruned_sessions.c


def _number_of_kept(column: Column[Any]) -> ScalarSelect[Any]:
    """Return the number of the nearest earlier turn that has one, usually the previous turn."""
    return (
        select(column)
        .where(_KEPT.c.session_id == _T.session_id, _KEPT.c.row < _T.row, _KEPT.c.turn_number.is_not(None))
        .order_by(_KEPT.c.row.desc())
        .limit(1)
        .correlate(turns)
        .scalar_subquery()
    )


def _number_of_pruned(column: Column[Any]) -> ScalarSelect[Any]:
    """Return the number of the session's newest pruned turn. `adapters.sql.prune` leaves no earlier turn without a
    number."""
    return select(column).where(_P.session_id == _T.session_id, _P.turn_row < _T.row).correlate(turns).scalar_subquery()


# Numbers grow with rows, so the later of the two has the greater number and row. Count from there.
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
"""An expression over `turns`: the number of a turn that has none yet. Its cost grows with the live turns of the
session, not with all of its turns."""


# A session's past turns as questions, with their files, and answers.
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
    """Convert rows of HISTORY to turns. Several messages of one role in a turn are joined by an empty line."""
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
    """Return a past turn. The log names a message's files in its text; the model gets them as files again."""
    if request_json is not None:
        request = TurnRequest.from_stored(request_json)
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
        """Log the turn's user message, without its text if redacted. Returns its row; logging it again returns the
        same."""
        values = _values(request.session_id, request.turn_id, "user", request.message_with_files, redact)
        while True:
            found = self._db.write_returning(self._insert_returning, values) or self._db.first(
                _ROW, {"turn": request.turn_id, "said_by": "user", "at": 0}
            )
            if found is not None:  # None: deleted between the two statements
                return int(found["row"])

    def user_row(self, turn_id: str) -> int | None:
        """Return the row of the turn's user message, or None before it is logged."""
        found = self._db.first(_ROW, {"turn": turn_id, "said_by": "user", "at": 0})
        return None if found is None else int(found["row"])

    def write_user(self, connection: Transaction, *, session_id: str, turn_id: str, content: str, redact: bool) -> bool:
        """Effect: log the user message of a turn that never started. Returns False if it was logged before."""
        values = _values(session_id, turn_id, "user", content, redact)
        return connection.write(self._insert, values) == 1

    def write_assistant(
        self, connection: Transaction, *, session_id: str, turn_id: str, content: str, redact: bool = False
    ) -> bool:
        """Effect: log the turn's answer. Returns False if it was logged before."""
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


_FROM_SQL = "earlier-"  # The engine uses this prefix for turns of messages that it read back from SQL.
_BEFORE, _REPLY, _TOOL, _AFTER = 0, 1, 2, 3
_RANK_SIZE = 1_000_000  # more messages than a step has
MessagePosition = tuple[int, int, str]
"""The position of a message in its turn: step, place in the step, digest."""


def other_turn_ids(turn_id: str, messages: Sequence[Message]) -> list[str]:
    """Return the ids of other turns to which these messages belong."""
    named = {message.turn for message in messages if not message.turn.startswith(_FROM_SQL)}
    return sorted(named - {turn_id, ""})


def transcript_rows(session_id: str, turn_id: str, messages: Sequence[Message], redact: bool) -> list[dict[str, Any]]:
    """Return the transcript rows for the messages of a turn among `messages`."""
    within, repeats = Counter[tuple[int, int]](), Counter[tuple[int, str, str]]()
    rows: list[dict[str, Any]] = []
    for message in _own_messages(turn_id, messages):
        body = _redact_message(message) if redact else sql_json(message, exclude_defaults=True)
        digest = "" if message.call_id else hashlib.blake2b(body.encode(), digest_size=16).hexdigest()
        if digest:
            key = (message.step, message.role, digest)
            repeats[key] += 1
            digest += f".{repeats[key]}" if repeats[key] > 1 else ""  # The same words sent again are another message.
        rank = _rank_in_step(message)
        within[message.step, rank] += 1
        nth = _call_index(message.call_id) or within[message.step, rank]
        rows.append(
            {
                "turn_id": turn_id,
                "session_id": session_id,
                "step": message.step,
                "role": message.role,
                "call_id": message.call_id,
                "digest": digest,
                "place": rank * _RANK_SIZE + nth,
                "redacted": redact,
                "message_json": body,
            }
        )
    return rows


def message_position(row: Any) -> MessagePosition:
    return row["step"], row["place"], row["digest"]


def messages_after(turn_id: str, messages: Sequence[Message], last: MessagePosition | None) -> list[Message]:
    """Return the turn's messages after `last`, or all if it is None, in the order of the transcript."""
    ours = _own_messages(turn_id, messages)
    places = [message_position(row) for row in transcript_rows("", turn_id, ours, redact=False)]
    order = sorted(range(len(ours)), key=places.__getitem__)
    return [ours[at] for at in order if last is None or places[at] > last]


def _own_messages(turn_id: str, messages: Sequence[Message]) -> list[Message]:
    """Return the messages of a turn, without the message that a review adds to its session's conversation."""
    return [message for message in messages if message.turn == turn_id and _extra_value(message, "note") != "review"]


def _rank_in_step(message: Message) -> int:
    """Return a message's place in its step: input that the step read, the reply, its tool messages, then notes.

    The place depends only on the message, because a history is archived in parts that do not know each other.
    """
    match message.role:
        case "assistant":
            return _REPLY
        case "tool":
            return _TOOL
        case _:
            return _BEFORE if _extra_value(message, "input") else _AFTER


def _extra_value(message: Message, name: str) -> object:
    return (message.extra or {}).get(name)


def _call_index(call_id: str) -> int:
    """Return the place in the model's order, from 1, with which our call ids end. Returns 0 for other ids."""
    last = call_id.rpartition("-")[2]
    return int(last) + 1 if last.isdecimal() and len(last) < 6 else 0


def _redact_message(message: Message) -> str:
    """Return the message without its content."""
    return json.dumps({"role": message.role, "call_id": sql_text(message.call_id)})


_TR = transcripts.c
_WHOLE = (
    select(_TR.message_json, _TR.redacted, _TR.step, _TR.place, _TR.digest)
    .where(_TR.turn_id == bindparam("turn"))
    .order_by(_TR.step, _TR.place, _TR.digest)
)
_PAGE = _WHOLE.limit(bindparam("limit")).offset(bindparam("after"))
_OF_STEPS = _WHOLE.where(
    _TR.step >= bindparam("first"), _TR.step <= bindparam("last"), _TR.role.in_(("assistant", "tool"))
)
_COUNT = select(func.count().label("kept")).where(_TR.turn_id == bindparam("turn"))
_UNRECORDED = select(turns.c.turn_id).where(
    turns.c.turn_id.in_(bindparam("turns", expanding=True)), turns.c.ended_at.is_(None)
)


class Transcripts:
    """The `transcripts` table."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._rows = ManyRows(transcripts, database)

    def archive(self, session_id: str, turn_id: str, messages: Sequence[Message], redact: bool) -> None:
        """Store messages that are about to leave the session's history in Redis. Idempotent.

        Messages of earlier turns are stored only if the record of their turn is not yet written; otherwise they are in
        SQL, or were pruned.
        """
        others = other_turn_ids(turn_id, messages)
        late = {row["turn_id"] for row in self._db.all(_UNRECORDED, {"turns": others})} if others else set()
        rows = [
            row
            for of_turn in (turn_id, *sorted(late))
            for row in transcript_rows(session_id, of_turn, messages, redact)
        ]
        if rows:
            with self._db.transaction() as connection:
                self._rows.insert(connection, rows)

    def write(
        self, connection: Transaction, *, session_id: str, turn_id: str, messages: Sequence[Message], redact: bool
    ) -> None:
        """Effect: store the turn's messages. Messages that were archived before stay unchanged."""
        self._rows.insert(connection, transcript_rows(session_id, turn_id, messages, redact))

    def of_turn(self, turn_id: str) -> tuple[Message, ...]:
        """Return the conversation in order: the user's message, then for each step the input it read, the reply, its
        tool messages in the order of the calls, and notes. It is empty if there is none, or if it is redacted."""
        return _messages(self._db.all(_WHOLE, {"turn": turn_id})) or ()

    def page(self, turn_id: str, limit: int, after: int) -> tuple[tuple[Message, ...] | None, MessagePosition | None]:
        """Return at most `limit` messages after the first `after`, or None if they are redacted; and the position of
        the last one."""
        found = self._db.all(_PAGE, {"turn": turn_id, "limit": limit, "after": after})
        return _messages(found), message_position(found[-1]) if found else None

    def count(self, turn_id: str) -> int:
        """Return the number of messages."""
        return int((self._db.first(_COUNT, {"turn": turn_id}) or {"kept": 0})["kept"])

    def of_calls(self, turn_id: str, first_step: int, last_step: int) -> tuple[Message, ...]:
        """Return the replies of these steps and their tool messages, without redacted ones."""
        return _messages(self._db.all(_OF_STEPS, {"turn": turn_id, "first": first_step, "last": last_step})) or ()


def _messages(found: Sequence[Record]) -> tuple[Message, ...] | None:
    if any(row["redacted"] for row in found):
        return None
    return tuple(Message.from_stored(row["message_json"]) for row in found)
