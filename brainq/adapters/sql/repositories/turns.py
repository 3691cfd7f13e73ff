"""Turns: each is accepted once and ended once. Also decides when two submits are the same turn, and what is kept of a
rejected submit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import and_, bindparam, func, or_, select, update

from brainq.adapters.sql.database import Database, Transaction
from brainq.adapters.sql.prepared import Record
from brainq.adapters.sql.repositories.session_log import PAST_TURNS, TURN_NUMBER, read_past_turns
from brainq.adapters.sql.statements import in_sessions, insert_or_ignore
from brainq.adapters.sql.tables import finalizer_steps, turns
from brainq.adapters.sql.tables.types import utc_now
from brainq.adapters.sql.text import sql_json, sql_text
from brainq.contracts.conversation import EarlierTurn
from brainq.contracts.ids import DERIVED_PREFIXES, PREFIX_BOUNDARY, check_id, check_turn_id, prefix_upper_bound
from brainq.contracts.rows import AcceptedTurn, TurnRow, UnendedTurn, WholeTurn
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import LATE_FAILURE_WARNINGS, TurnRequest, TurnResult
from brainq.errors import InvalidInput, SubmitConflict, TurnRejected
from brainq.runtime.text.shorten import line_of

MAX_RAW_BYTES = 10_240
MAX_REASON_CHARS = 2_000
_T = turns.c
_INSERT = insert_or_ignore(turns)
_INSERT_ENDED = insert_or_ignore(turns, fixed={"ended_at": utc_now()})
_SAME = select(_T.turn_id, _T.request_key, _T.session_id, _T.state, _T.content_hash, _T.reject_reason).where(
    or_(_T.request_key == bindparam("key"), _T.turn_id == bindparam("turn"))
)
_BRIEF = select(*(_T[field.name] for field in fields(TurnRow)))
_GET = _BRIEF.where(_T.turn_id == bindparam("turn"))
_NEWEST = _BRIEF.order_by(_T.row.desc()).limit(bindparam("limit"))
_FIND = _NEWEST.where(
    or_(
        _T.request_key == bindparam("sought"), and_(_T.turn_id >= bindparam("sought"), _T.turn_id < bindparam("beyond"))
    )
)
# Only turns of this session, because the existence of another session's turn must not be revealed.
_this_row = (
    select(_T.row).where(_T.turn_id == bindparam("before"), _T.session_id == bindparam("session")).scalar_subquery()
)
_PAGE = (
    _BRIEF.add_columns(_T.request_json, _T.result_json)
    .where(_T.session_id == bindparam("session"), _T.state != "rejected")
    .order_by(_T.row.desc())
    .limit(bindparam("limit"))
)
_PAGE_BEFORE = _PAGE.where(_T.row < _this_row)
_REQUEST = select(_T.request_json).where(_T.turn_id == bindparam("turn"), _T.state != "rejected")
ROWS_AT_ONCE = 500  # parameters of one statement
_DEAD = (
    select(finalizer_steps.c.step)
    .where(finalizer_steps.c.turn_id == bindparam("turn"), finalizer_steps.c.state == "dead")
    .order_by(finalizer_steps.c.step)
)
_RESULT = select(_T.result_json).where(_T.turn_id == bindparam("turn"))
_UNENDED = (
    select(_T.row, _T.turn_id, _T.session_id)
    .where(_T.ended_at.is_(None), _T.row > bindparam("after"))
    .order_by(_T.row)
    .limit(bindparam("limit"))
)
_UNENDED_OF = _UNENDED.where(_T.session_id >= bindparam("first"), _T.session_id < bindparam("beyond"))
_FIRST = (
    select(_T.request_json)
    .where(_T.session_id == bindparam("session"), _T.state != "rejected")
    .order_by(_T.row)
    .limit(1)
)
_NEWEST_CHAT = (
    select(_T.request_json)
    .where(_T.session_id == bindparam("session"), _T.state != "rejected", _T.kind == "chat")
    .order_by(_T.row.desc())
    .limit(1)
)
_NUMBER = select(func.coalesce(_T.turn_number, TURN_NUMBER).label("number")).where(
    _T.turn_id == bindparam("turn"), _T.state != "rejected"
)
_END = (
    update(turns)
    .where(_T.turn_id == bindparam("turn"), _T.ended_at.is_(None))
    .values(turn_number=func.coalesce(_T.turn_number, TURN_NUMBER), ended_at=utc_now())
)
_REFUSE = (
    update(turns)
    .where(_T.turn_id == bindparam("turn"), _T.ended_at.is_(None))
    .values(state="rejected", reject_reason=bindparam("why", type_=_T.reject_reason.type), ended_at=utc_now())
)
_FORGET = (
    update(turns)
    .where(_T.turn_id == bindparam("turn"))
    .values(request_json=bindparam("kept", type_=_T.request_json.type), message="")
)


def content_hash(request: TurnRequest) -> str:
    """Return the sha256 of the canonical request, without its ids and its trace context, which a retry may change.

    Fields with their default value are left out, so that a field that is added later does not change old hashes.
    """
    content = request.model_dump(exclude={"turn_id", "request_key", "traceparent"}, exclude_defaults=True)
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def match_existing(request: TurnRequest, digest: str, found: Sequence[Record]) -> AcceptedTurn:
    """Decide what a request means if rows exist for it. The request key takes precedence over the turn id."""
    by_key = next((row for row in found if row["request_key"] == request.key), None)
    if by_key is not None:
        if by_key["state"] == "rejected":
            raise TurnRejected(by_key["reject_reason"] or "rejected")
        if by_key["content_hash"] != digest:
            raise SubmitConflict(
                f"request_key {request.key!r} was used before, by turn {by_key['turn_id']!r}, with other "
                "content; send the new content under a new request_key",
                used_by=by_key["turn_id"],
            )
        return AcceptedTurn(by_key["turn_id"], by_key["session_id"], created=False, ended=by_key["state"] != "accepted")
    by_turn = next((row for row in found if row["turn_id"] == request.turn_id), None)
    if by_turn is not None:
        raise SubmitConflict(
            f"turn_id {request.turn_id!r} was used before, with request_key {by_turn['request_key']!r}; "
            "use a new turn_id, or send the same request_key"
        )
    raise SubmitConflict(f"turn {request.turn_id!r} was deleted while it was submitted; submit it again")


def rejected_values(
    turn_id: object, request_key: object, session_id: object, reason: str, raw: object
) -> dict[str, object]:
    """Return the columns of a rejected row. Never raises."""
    kept = _raw_text(raw)
    evidence = json.dumps([_shortened(turn_id), _shortened(request_key), _shortened(session_id), kept])
    stand_in = f"rejected-{hashlib.sha256(evidence.encode()).hexdigest()[:32]}"
    kept_turn_id = _valid_id_or(check_turn_id, turn_id, stand_in)
    return {
        "turn_id": kept_turn_id,
        "request_key": _valid_id_or(check_id, request_key, kept_turn_id),
        "session_id": _valid_id_or(check_id, session_id, "unknown"),
        "state": "rejected",
        "content_hash": "",
        "reject_reason": reason[:MAX_REASON_CHARS],
        "request_json": kept,
    }


def _valid_id_or(check: Callable[[str, object], str], value: object, otherwise: str) -> str:
    try:
        kept = check("id", value)
    except InvalidInput:
        return otherwise
    # A refused submit must not block the turn whose id brainq derives.
    return otherwise if kept.startswith(DERIVED_PREFIXES) else kept


def _raw_text(raw: object) -> str:
    text = raw if isinstance(raw, str) else _shortened(raw)
    return sql_text(text[:MAX_RAW_BYTES]).encode()[:MAX_RAW_BYTES].decode(errors="ignore")


def _shortened(value: object) -> str:
    try:
        return repr(value)[: MAX_RAW_BYTES * 2]
    except Exception:
        return f"<{type(value).__name__}>"


class Turns:
    """The `turns` table, and the history of its turns."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._insert = database.pick(_INSERT)
        self._insert_ended = database.pick(_INSERT_ENDED)

    def accept(self, request: TurnRequest, as_sent: TurnRequest | None = None) -> AcceptedTurn:
        """Insert the turn, or return the turn that already has this request key.

        as_sent   the request in the form in which its producer sent it, if it differs; it identifies a repeated submit

        A new turn takes one statement. Raises SubmitConflict if the request key or turn id was used with other content;
        TurnRejected if the key was rejected before.
        """
        digest = content_hash(as_sent or request)
        values = {
            "turn_id": request.turn_id,
            "request_key": request.key,
            "session_id": request.session_id,
            "state": "accepted",
            "content_hash": digest,
            "request_json": sql_json(request),
            "kind": request.kind,
            "brain": request.brain,
            "message": line_of(request.message_with_files),
        }
        if self._db.put(self._insert, values, durably=True):
            return AcceptedTurn(request.turn_id, request.session_id, created=True)
        found = self._db.all(_SAME, {"key": request.key, "turn": request.turn_id})
        return match_existing(request, digest, found)

    def reject(self, turn_id: object, request_key: object, session_id: object, reason: str, raw: object) -> str:
        """Store a rejected submit as evidence. Returns the turn id under which it is stored.

        Any input is accepted: malformed ids are replaced, and `raw` is cut to 10 kB. Repeats share one row, and an
        accepted turn with the same id or key stays unchanged.
        """
        values = rejected_values(turn_id, request_key, session_id, reason, raw)
        self._db.put(self._insert_ended, values)
        return str(values["turn_id"])

    def rows(self, turn_ids: Sequence[str]) -> list[TurnRow]:
        """Return those of the given turns that exist, in any order."""
        found: list[TurnRow] = []
        for at in range(0, len(turn_ids), ROWS_AT_ONCE):
            some = _BRIEF.where(_T.turn_id.in_(turn_ids[at : at + ROWS_AT_ONCE]))
            found += [turn_row(row) for row in self._db.all(some, {})]
        return found

    def request(self, turn_id: str) -> TurnRequest | None:
        """Return the request of an accepted turn, or None if it is unknown or rejected."""
        found = self._db.first(_REQUEST, {"turn": turn_id})
        return None if found is None else TurnRequest.from_stored(found["request_json"])

    def result(self, turn_id: str) -> TurnResult | None:
        """Return the result, once the finalizer has written it, with a warning for each dead later step."""
        found = self._db.first(_RESULT, {"turn": turn_id})
        if found is None or found["result_json"] is None:
            return None
        result = TurnResult.from_stored(found["result_json"])
        dead = [row["step"] for row in self._db.all(_DEAD, {"turn": turn_id}) if row["step"] in LATE_FAILURE_WARNINGS]
        later = tuple(LATE_FAILURE_WARNINGS[step] for step in dead)
        return result.model_copy(update={"warnings": (*result.warnings, *later)}) if later else result

    def get(self, turn_id: str) -> TurnRow | None:
        found = self._db.first(_GET, {"turn": turn_id})
        return None if found is None else turn_row(found)

    def is_open(self, turn_id: str) -> bool:
        """Return whether the turn is accepted and not ended in SQL."""
        found = self._db.first(_GET, {"turn": turn_id})
        return found is not None and found["ended_at"] is None

    def by_key(self, request_key: str) -> str | None:
        """Return the turn with this request key, which may be rejected."""
        found = self._db.first(_SAME, {"key": request_key, "turn": ""})
        return None if found is None else str(found["turn_id"])

    def refuse(self, turn_id: str, reason: str) -> bool:
        """Reject an accepted turn that cannot be queued. Returns False, and changes nothing, unless it is still
        open."""
        return self._db.put(_REFUSE, {"turn": turn_id, "why": reason}) == 1

    def find(self, sought: str, limit: int = 20) -> list[TurnRow]:
        """Return the turns whose id begins with `sought` or whose request key is `sought`, newest first."""
        beyond = sought + "~"  # `~` sorts after every character that an id may contain.
        return _turn_rows(self._db.all(_FIND, {"sought": sought, "beyond": beyond, "limit": limit}))

    def list(
        self,
        session_id: str | None = None,
        state: str | None = None,
        limit: int = 50,
        before_row: int | None = None,
        sessions: Sequence[str] | None = None,
    ) -> list[TurnRow]:
        """Return turns, newest first. Pass the row of the last one as `before_row` for the next page.

        state      `accepted` (not ended), `rejected`, or an ending
        sessions   only turns of sessions with one of these prefixes
        """
        statement = _NEWEST
        if session_id is not None:
            statement = statement.where(_T.session_id == session_id)
        if state is not None:
            statement = statement.where(_T.state == state)
        if before_row is not None:
            statement = statement.where(_T.row < before_row)
        if sessions is not None:
            statement = statement.where(in_sessions(_T.session_id, sessions))
        return _turn_rows(self._db.all(statement, {"limit": limit}))

    def page(self, session_id: str, limit: int, before_turn_id: str | None = None) -> list[WholeTurn]:
        """Return the session's accepted turns, newest first, or those before `before_turn_id`."""
        values: dict[str, object] = {"session": session_id, "limit": limit}
        if before_turn_id is None:
            found = self._db.all(_PAGE, values)
        else:
            found = self._db.all(_PAGE_BEFORE, {**values, "before": before_turn_id})
        return [_whole_turn(dict(record)) for record in found]

    def unended(self, after_row: int, limit: int) -> Sequence[UnendedTurn]:
        """Return accepted turns without a result, in row order.

        On Postgres a row may become visible after a higher one while its transaction lasts.
        """
        found = self._db.all(_UNENDED, {"after": after_row, "limit": limit})
        return [UnendedTurn(**row) for row in found]

    def unended_of(self, whose: str, after_row: int, limit: int) -> Sequence[UnendedTurn]:
        """Return `unended` turns of one tenant, named by its key, or of one session."""
        beyond = prefix_upper_bound(whose) if whose.endswith(PREFIX_BOUNDARY) else whose + "\x01"
        values = {"first": whose, "beyond": beyond, "after": after_row, "limit": limit}
        return [UnendedTurn(**row) for row in self._db.all(_UNENDED_OF, values)]

    def number(self, turn_id: str) -> int:
        """Return the turn's position among its session's accepted turns, from 1, or 0 if SQL does not have it."""
        found = self._db.first(_NUMBER, {"turn": turn_id})
        return 0 if found is None else int(found["number"])

    def first(self, session_id: str) -> TurnRequest | None:
        """Return the request of the session's first turn that is still stored."""
        found = self._db.first(_FIRST, {"session": session_id})
        return None if found is None else TurnRequest.from_stored(found["request_json"])

    def newest(self, session_id: str) -> TurnRequest | None:
        """Return the request of the session's newest chat turn that is still stored."""
        found = self._db.first(_NEWEST_CHAT, {"session": session_id})
        return None if found is None else TurnRequest.from_stored(found["request_json"])

    def history(self, session_id: str, before_turn_id: str, limit_turns: int) -> Sequence[EarlierTurn]:
        """Return the session's last turns before this one, oldest first.

        Turns with a redacted message or without an answer are left out.
        """
        found = self._db.all(PAST_TURNS, {"session": session_id, "before": before_turn_id, "limit": limit_turns})
        return read_past_turns(found)

    def write_result(self, connection: Transaction, result: TurnResult, failed_calls: int = 0) -> bool:
        """Effect: end the turn. Returns False, and changes nothing, if it has ended or is not in SQL."""
        ended = connection.write(
            _END,
            {
                "turn": result.turn_id,
                "state": result.ending.value,
                "ending": result.ending.value,
                "stop_reason": result.stop_reason.value,
                "error": result.error,
                "result_json": sql_json(result),
                "steps": result.steps,
                "calls": result.tool_calls,
                "failed_calls": failed_calls,
                "tokens": result.input_tokens + result.output_tokens,
                "cost_usd": result.cost_usd,
            },
        )
        return ended == 1

    def forget_request(
        self, connection: Transaction, turn_id: str, redacted: Callable[[TurnRequest], TurnRequest]
    ) -> None:
        """Effect: replace the turn's request with its redacted form. A repeated submit is still recognised."""
        found = connection.first(_REQUEST, {"turn": turn_id})
        if found is not None:
            kept = redacted(TurnRequest.from_stored(found["request_json"]))
            connection.write(_FORGET, {"turn": turn_id, "kept": sql_json(kept)})


def _turn_rows(found: Sequence[Record]) -> list[TurnRow]:
    return [turn_row(row) for row in found]


def _whole_turn(record: dict[str, Any]) -> WholeTurn:
    request, result = record.pop("request_json"), record.pop("result_json")
    return WholeTurn(
        turn_row(record),
        TurnRequest.from_stored(request),
        None if result is None else TurnResult.from_stored(result),
    )


def turn_row(found: Record | dict[str, Any]) -> TurnRow:
    values = dict(found)
    values["ending"] = None if values["ending"] is None else Ending(values["ending"])
    values["stop_reason"] = None if values["stop_reason"] is None else StopReason(values["stop_reason"])
    return TurnRow(**values)
