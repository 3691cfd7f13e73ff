"""Inputs: messages sent into a turn, and their outcomes."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import fields

from pydantic import TypeAdapter
from sqlalchemy import (
    ColumnElement,
    Float,
    Integer,
    Update,
    and_,
    bindparam,
    func,
    literal_column,
    null,
    or_,
    select,
    update,
)

from brainq.adapters.sql.database import UNREADABLE, Database, Transaction
from brainq.adapters.sql.prepared import Record
from brainq.adapters.sql.statements import insert_or_ignore
from brainq.adapters.sql.tables import inputs
from brainq.adapters.sql.tables.types import utc_after, utc_now
from brainq.contracts.message import Attachment
from brainq.contracts.people import TurnInput
from brainq.contracts.rows import InputRow
from brainq.errors import SubmitConflict

_ATTACHMENTS: TypeAdapter[tuple[Attachment, ...]] = TypeAdapter(tuple[Attachment, ...])
_I = inputs.c
_ACCEPTED = _I.state == literal_column("'accepted'")  # a literal, because only then is the partial index used
_INSERT = insert_or_ignore(inputs)
_WHOLE = select(*(_I[field.name] for field in fields(InputRow) if field.name in _I), _I.attachments_json)
_HERE = and_(_I.session_id == bindparam("session"), _I.client_message_id == bindparam("message"))
_GET = _WHOLE.where(_HERE)
_OF = _WHOLE.where(_I.turn_id == bindparam("turn")).order_by(_I.row)
_OPEN = (
    _WHOLE.where(
        _ACCEPTED, _I.row > bindparam("after"), _I.accepted_at <= utc_after(bindparam("seconds", type_=Float()))
    )
    .order_by(_I.row)
    .limit(bindparam("most"))
)
_MOVE = update(inputs).where(_HERE, _ACCEPTED).values(settled_at=utc_now())
_READ_OR_OPEN = select(_I.client_message_id, _I.step).where(
    _I.turn_id == bindparam("turn"), _I.state.in_(("accepted", "consumed"))
)
_FORGET = (
    update(inputs)
    .where(_I.turn_id == bindparam("turn"), _I.state != "accepted")
    .values(text="", attachments_json=null())
)


def _consume(where: ColumnElement[bool]) -> Update:
    """Return the update that marks inputs as consumed.

    The last step that read an input counts, because Redis may have lost the first.
    """
    step = bindparam("at", type_=Integer())
    return (
        update(inputs)
        .where(
            where,
            _I.client_message_id.in_(bindparam("messages", expanding=True)),
            or_(_ACCEPTED, and_(_I.state == "consumed", _I.step != step)),
        )
        .values(state="consumed", step=step, settled_at=func.coalesce(_I.settled_at, utc_now()))
    )


_CONSUME = _consume(_I.session_id == bindparam("session"))
_CONSUME_OF_TURN = _consume(_I.turn_id == bindparam("turn"))


class Inputs:
    """The `inputs` table. An input is `accepted` until it is `consumed`, `bounced` or `refused`; that is final."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._insert = database.pick(_INSERT)

    def accept(self, session_id: str, turn_id: str, item: TurnInput) -> InputRow:
        """Insert an input, or return the session's input with the same `client_message_id`, whatever its turn and
        outcome.

        Raises SubmitConflict if the id was used in this session with another text or readiness.
        """
        digest = _content_hash(item)
        values = {
            **item.model_dump(exclude={"attachments"}),
            "attachments_json": _ATTACHMENTS.dump_json(item.attachments).decode() if item.attachments else None,
            "session_id": session_id,
            "turn_id": turn_id,
            "content_hash": digest,
            "state": "accepted",
        }
        while True:
            self._db.put(self._insert, values, durably=True)
            found = self._db.first(_GET, {"session": session_id, "message": item.client_message_id})
            if found is not None:  # None: deleted between the two statements
                break
        if found["content_hash"] != digest:
            raise SubmitConflict(
                f"client_message_id {item.client_message_id!r} was used before in session {session_id!r}, with "
                "another text or readiness; send the new input under a new client_message_id"
            )
        return _row(found)

    def get(self, session_id: str, client_message_id: str) -> InputRow | None:
        found = self._db.first(_GET, {"session": session_id, "message": client_message_id})
        return None if found is None else _row(found)

    def of_turn(self, turn_id: str) -> list[InputRow]:
        """Return the inputs sent to this turn in the order of acceptance, including bounced and refused ones."""
        return [_row(found) for found in self._db.all(_OF, {"turn": turn_id})]

    def open(self, after_row: int, limit: int, older_than_s: float) -> list[InputRow]:
        """Return inputs without an outcome that were accepted at least this long ago, in row order, including
        unreadable ones.

        On Postgres a row may become visible after a higher one while its transaction lasts.
        """
        values = {"after": after_row, "most": limit, "seconds": -older_than_s}
        return [_row(found) for found in self._db.readable(_OPEN, values, "client_message_id")]

    def consumed(self, session_id: str, ids_to_steps: Mapping[str, int]) -> int:
        """Record that the model read these inputs (step by `client_message_id`). Returns the number of changed rows.

        Bounced and refused inputs stay unchanged, and so do inputs consumed by the same step.
        """
        by_step = _by_step(ids_to_steps)
        if len(by_step) == 1:
            ((step, messages),) = by_step.items()
            return self._db.put(_CONSUME, {"session": session_id, "at": step, "messages": messages})
        changed = 0
        if by_step:
            with self._db.transaction() as connection:
                for step, messages in by_step.items():
                    values = {"session": session_id, "at": step, "messages": messages}
                    changed += connection.write(_CONSUME, values)
        return changed

    def bounced(self, session_id: str, client_message_id: str, turn_id: str, *, redact: bool = False) -> bool:
        """Record that an input became a new turn. Returns False, and changes nothing, unless it was still accepted.

        redact   remove the text; insert the new turn's row before
        """
        values = {"state": "bounced", "bounced_turn_id": turn_id}
        return self._move(session_id, client_message_id, values, redact)

    def refused(self, session_id: str, client_message_id: str, *, redact: bool = False) -> bool:
        """Record that an input will not be read.

        Returns False, and changes nothing, unless it was still accepted. `redact` removes the text.
        """
        return self._move(session_id, client_message_id, {"state": "refused"}, redact)

    def settle(self, connection: Transaction, turn_id: str, receipts: Mapping[str, str]) -> None:
        """Effect: mark inputs as consumed according to the turn's receipts in Redis.

        Other inputs stay, because bouncing moves them. Takes one statement if all rows are up to date, and none if
        nothing was consumed.
        """
        steps = {
            message: int(step)
            for message, (word, _, step) in ((key, value.partition(" ")) for key, value in receipts.items())
            if word == "consumed" and step.isdecimal()
        }
        if not steps:
            return
        rows = connection.all(_READ_OR_OPEN, {"turn": turn_id})
        recorded = {row["client_message_id"]: row["step"] for row in rows}
        changed = {message: steps[message] for message, step in recorded.items() if steps.get(message, step) != step}
        for step, messages in _by_step(changed).items():
            connection.write(_CONSUME_OF_TURN, {"turn": turn_id, "at": step, "messages": messages})

    def forget(self, connection: Transaction, turn_id: str) -> None:
        """Effect: remove the texts of the turn's inputs.

        An input without an outcome keeps its text until it has one.
        """
        connection.write(_FORGET, {"turn": turn_id})

    def _move(self, session_id: str, client_message_id: str, values: Mapping[str, object], redact: bool) -> bool:
        values = {"session": session_id, "message": client_message_id, **values}
        return self._db.put(_MOVE, {**values, "text": "", "attachments_json": None} if redact else values) == 1


def _row(found: Record) -> InputRow:
    values = dict(found)
    attachments = values.pop("attachments_json")
    if values.pop(UNREADABLE, ""):
        values["text"] = ""
        return InputRow(**values, is_unreadable=True)
    return InputRow(
        **values, attachments=() if attachments is None else _ATTACHMENTS.validate_json(attachments, extra="ignore")
    )


def _by_step(ids_to_steps: Mapping[str, int]) -> dict[int, list[str]]:
    """Group inputs by step, in order. The inputs are sorted so that two writers lock rows in the same order."""
    found: defaultdict[int, list[str]] = defaultdict(list)
    for message, step in sorted(ids_to_steps.items()):
        found[step].append(message)
    return dict(sorted(found.items()))


def _content_hash(item: TurnInput) -> str:
    """Return the sha256 of the fields in which equal inputs must agree."""
    content = [item.text, item.readiness, *(one.sha256 for one in item.attachments)]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()
