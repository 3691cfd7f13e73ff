"""Transcripts: the whole conversation of a turn; what identifies each of its messages, and their order."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from sqlalchemy import bindparam, func, select

from brainq.contracts.message import Message
from brainq.store.database import Database, Record, Transaction
from brainq.store.statements import ManyRows
from brainq.store.tables import transcripts, turns
from brainq.store.text import sql_json, sql_text

_FROM_SQL = "earlier-"  # the engine gives such turns to messages it read back from SQL
_BEFORE, _REPLY, _TOOL, _AFTER = 0, 1, 2, 3
_RANK_SIZE = 1_000_000  # more messages than a step has
MessagePosition = tuple[int, int, str]
"""A message's place in its turn: step, place in the step, digest."""


def other_turn_ids(turn_id: str, messages: Sequence[Message]) -> list[str]:
    """The other turns these messages are of."""
    named = {message.turn for message in messages if not message.turn.startswith(_FROM_SQL)}
    return sorted(named - {turn_id, ""})


def transcript_rows(session_id: str, turn_id: str, messages: Sequence[Message], redact: bool) -> list[dict[str, Any]]:
    """The rows of a turn's messages among `messages`."""
    within, repeats = Counter[tuple[int, int]](), Counter[tuple[int, str, str]]()
    rows: list[dict[str, Any]] = []
    for message in _own_messages(turn_id, messages):
        body = _redact_message(message) if redact else sql_json(message, exclude_defaults=True)
        digest = "" if message.call_id else hashlib.blake2b(body.encode(), digest_size=16).hexdigest()
        if digest:
            key = (message.step, message.role, digest)
            repeats[key] += 1
            digest += f".{repeats[key]}" if repeats[key] > 1 else ""  # the same words again are another message
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
    """The turn's messages among these that stand behind `last` (None: all of them), in the order of a transcript."""
    ours = _own_messages(turn_id, messages)
    places = [message_position(row) for row in transcript_rows("", turn_id, ours, redact=False)]
    order = sorted(range(len(ours)), key=places.__getitem__)
    return [ours[at] for at in order if last is None or places[at] > last]


def _own_messages(turn_id: str, messages: Sequence[Message]) -> list[Message]:
    """What a review left in its session's conversation is not a message of the review."""
    return [message for message in messages if message.turn == turn_id and _extra_value(message, "note") != "review"]


def _rank_in_step(message: Message) -> int:
    """A message's place in its step: input that the step read, the reply, its tool messages, notes after them.

    It follows from the message alone: a history is archived in parts, and a part does not know its neighbours.
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
    """The place in the model's order that our call ids end in, from 1; 0 for other ids."""
    last = call_id.rpartition("-")[2]
    return int(last) + 1 if last.isdecimal() and len(last) < 6 else 0


def _redact_message(message: Message) -> str:
    """That there was a message, and whose."""
    return json.dumps({"role": message.role, "call_id": sql_text(message.call_id)})


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
        """Effect: keep the turn's messages; those archived before stay."""
        self._rows.insert(connection, transcript_rows(session_id, turn_id, messages, redact))

    def of_turn(self, turn_id: str) -> tuple[Message, ...]:
        """The conversation in order: the user's message, then step by step the input it read, the reply, its tool
        messages in the order of the calls, and notes on it. Empty when there is none, or it is redacted."""
        return _messages(self._db.all(_WHOLE, {"turn": turn_id})) or ()

    def page(self, turn_id: str, limit: int, after: int) -> tuple[tuple[Message, ...] | None, MessagePosition | None]:
        """At most `limit` messages behind the first `after`; None where they are redacted. And the place of the last
        one."""
        found = self._db.all(_PAGE, {"turn": turn_id, "limit": limit, "after": after})
        return _messages(found), message_position(found[-1]) if found else None

    def count(self, turn_id: str) -> int:
        """How many messages there are."""
        return int((self._db.first(_COUNT, {"turn": turn_id}) or {"kept": 0})["kept"])

    def of_calls(self, turn_id: str, first_step: int, last_step: int) -> tuple[Message, ...]:
        """The replies of these steps and their tool messages; empty when there are none, or they are redacted."""
        return _messages(self._db.all(_OF_STEPS, {"turn": turn_id, "first": first_step, "last": last_step})) or ()


def _messages(found: Sequence[Record]) -> tuple[Message, ...] | None:
    if any(row["redacted"] for row in found):
        return None
    return tuple(Message.model_validate_json(row["message_json"]) for row in found)
