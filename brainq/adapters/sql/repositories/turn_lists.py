"""List turns and sessions from SQL, newest first, and search in requests and results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, get_args

from sqlalchemy import (
    Column,
    ColumnElement,
    Select,
    and_,
    bindparam,
    case,
    false,
    func,
    literal,
    literal_column,
    null,
    or_,
    select,
    true,
    type_coerce,
    union,
)

from brainq.adapters.sql.database import Database
from brainq.adapters.sql.list_places import Figure, as_stored, instants_of
from brainq.adapters.sql.prepared import Record
from brainq.adapters.sql.repositories.session_log import TURN_NUMBER
from brainq.adapters.sql.repositories.turn_search import contains, has_all, may_contain, may_have
from brainq.adapters.sql.statements import in_sessions
from brainq.adapters.sql.tables import calls, decisions, finalizer_steps, turns
from brainq.adapters.sql.tables.types import ContentText
from brainq.contracts.evaluation import Strategy
from brainq.contracts.history import MAX_SEARCHED_TURNS, ListedTurn, TurnFilter
from brainq.contracts.ids import CHILD_TURN_PREFIX
from brainq.contracts.rows import RecentTurn
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import ParentCall, TurnKind

_T = turns.c
# For a tenant whose keys are missing here, a list shows the content that is not encrypted.
_READABLE = ContentText("absent")
_S = finalizer_steps.c
_LISTED_FIELDS = (
    *("turn_id", "session_id", "request_key", "brain", "state", "ending", "stop_reason"),
    *("accepted_at", "ended_at", "dead_steps", "unknown_calls", "cost_usd"),
)
_COUNTS = ("steps", "calls", "failed_calls", "tokens")
_KINDS = get_args(TurnKind)
_DEAD = _S.state == literal_column("'dead'")  # a literal: only so the partial index is used
_DEAD_STEPS = (
    select(func.count())
    .select_from(finalizer_steps)
    .where(_S.turn_id == _T.turn_id, _DEAD)
    .correlate(turns)
    .scalar_subquery()
)
# Writes that were started and have no recorded outcome. For a live turn, Redis knows which of them are still running.
_UNKNOWN_CALLS = (
    select(func.count())
    .select_from(calls)
    .where(
        calls.c.turn_id == _T.turn_id,
        or_(calls.c.outcome_kind == "unknown", calls.c.state == "intent"),
    )
    .correlate(turns)
    .scalar_subquery()
)
_IS_CHILD = _T.turn_id.startswith(CHILD_TURN_PREFIX)
_LISTED = select(
    *(_T[name] for name in _LISTED_FIELDS if name not in ("dead_steps", "unknown_calls")),
    *(_T[name] for name in ("row", "reject_reason", "error", "kind", "message", *_COUNTS)),
    _DEAD_STEPS.label("dead_steps"),
    _UNKNOWN_CALLS.label("unknown_calls"),
    type_coerce(case((_IS_CHILD, _T.request_json), else_=null()), _READABLE).label("child_request"),
)
_SEARCHED_TEXTS = (
    *(_T[name] for name in ("row", "turn_id", "session_id", "request_key")),
    *(type_coerce(_T[name], _READABLE).label(name) for name in ("request_json", "result_json")),
)
RECENT = ("state", "accepted_at", "ended_at", "cost_usd")
_FAILED = (Ending.FAILED.value, Ending.TIMED_OUT.value)
_STEPS = select(_T.steps).where(_T.turn_id == bindparam("turn"))
_SESSION_LISTED = _LISTED.add_columns(func.coalesce(_T.turn_number, TURN_NUMBER).label("turns"))


def read_parent(request_json: str | None) -> ParentCall | None:
    """Return the call that started a turn, from its stored request."""
    parent = None if request_json is None else json.loads(request_json).get("parent")
    return None if parent is None else ParentCall.model_validate(parent, extra="ignore")


def _decided(strategy: Strategy) -> ColumnElement[bool]:
    """Return the condition that the turn's decision record has this strategy."""
    found = select(literal(1)).where(decisions.c.turn_id == _T.turn_id, decisions.c.strategy == strategy)
    return found.correlate(turns).exists()


@dataclass(frozen=True, slots=True)
class ListRow:
    """A turn of a list with SQL's facts, and its row number."""

    row: int
    turn: ListedTurn


class TurnLists:
    """A reader of `turns` for lists.

    Rows contain complete requests and results. So a page is first found by `row` alone in one index, which the
    statement selects by the only column that it leaves indexable; then the rows of the page are read.
    """

    def __init__(self, database: Database) -> None:
        self._db = database

    def steps_of(self, turn_id: str) -> int:
        """Return the number of a turn's steps, or 0 before it has ended."""
        found = self._db.first(_STEPS, {"turn": turn_id})
        return 0 if found is None else int(found["steps"] or 0)

    def row_number(self, turn_id: str, sessions: Sequence[str] | None) -> int | None:
        """Return the row number of a turn, or None if it does not exist in these sessions."""
        statement = select(_T.row).where(_T.turn_id == turn_id)
        if sessions is not None:
            statement = statement.where(in_sessions(_T.session_id, sessions))
        found = self._db.first(statement, {})
        return None if found is None else int(found["row"])

    def unended(self, filters: TurnFilter, before: int | None, limit: int) -> list[ListRow]:
        """Return live turns, filtered by everything that SQL knows."""
        known = self._known(filters, before)
        if filters.brain is not None:
            known.append(_unindexed(_T.brain) == filters.brain)
        if filters.session is not None:
            return self._newest(limit, select(_T.row).where(*known, _unindexed(_T.state) == "accepted"))
        return self._newest(limit, select(_T.row).where(*known, _T.state == "accepted"))

    def ended(self, filters: TurnFilter, before: int | None, limit: int) -> list[ListRow]:
        """Return turns that have ended or were rejected."""
        chosen = select(_T.row).where(*self._known(filters, before))
        if filters.brain is not None:
            chosen = chosen.where(_unindexed(_T.brain) == filters.brain)
        states = _ended_states(filters)
        if not states:
            return []
        if filters.ending is not None:
            chosen = chosen.where(_unindexed(_T.state) == filters.ending.value)
        if filters.stop_reason is not None:
            chosen = chosen.where(_unindexed(_T.stop_reason) == filters.stop_reason.value)
        if filters.min_cost_usd is not None:
            chosen = chosen.where(_T.cost_usd + literal_column("0") >= filters.min_cost_usd)
        if filters.strategy is not None:
            chosen = chosen.where(_decided(filters.strategy))
        if filters.unknown:  # Such a call counts as failed, except in a turn whose state Redis lost.
            itself = (chosen.where(_T.state == state) for state in _FAILED)
            return self._newest(limit, chosen.where(_T.failed_calls > literal_column("0")), *itself)
        if filters.failing:
            given_up = select(_T.row).select_from(finalizer_steps.join(turns, _S.turn_id == _T.turn_id))
            by_calls = chosen.where(_T.failed_calls > literal_column("0"))
            by_steps = chosen.where(_T.row.in_(given_up.where(_DEAD)))
            itself = (chosen.where(_T.state == state) for state in _FAILED)
            return self._newest(limit, by_calls, by_steps, *itself)
        if filters.session is not None:
            return self._newest(limit, chosen.where(_unindexed(_T.state).in_(states)))
        if filters.stop_reason is StopReason.ANSWERED:
            states = [Ending.COMPLETED.value]
        elif filters.stop_reason is not None:
            unusual = _T.stop_reason != literal_column("'answered'")
            return self._newest(limit, chosen.where(unusual, _T.stop_reason == filters.stop_reason.value))
        elif filters.min_cost_usd is not None:
            expensive = chosen.where(_T.cost_usd >= filters.min_cost_usd)
            return self._newest(limit, expensive, by=_T.row + literal_column("0"))
        if filters.brain is not None:
            return self._newest(limit, chosen.where(_unindexed(_T.state).in_(states), _T.brain == filters.brain))
        return self._newest(limit, *(chosen.where(_T.state == state) for state in states))

    def ordered(self, filters: TurnFilter, behind: int | Figure | None, limit: int) -> list[ListRow]:
        """Return turns in the requested order after this row or figure. A search may return too many; `rows_with_text`
        selects the matches. State that only Redis has is ignored."""
        figure = {"cost": _T.cost_usd, "tokens": _T.tokens}.get(filters.sort)
        chosen = select(_T.row).where(*self._known(filters, None), _state_condition(filters))
        if figure is not None:
            chosen = chosen.where(figure.is_not(None))
        if behind is not None:
            chosen = chosen.where(_after_row(filters, figure, behind))
        order = [_T.row.asc()] if filters.sort == "oldest" else [_T.row.desc()]
        if figure is not None:
            order = [figure.desc(), *order]
        page = chosen.order_by(*order).limit(limit).subquery()
        statement = _LISTED.join(page, page.c.row == _T.row).order_by(*order)
        return [_list_row(found) for found in self._db.all(statement, {})]

    def recent(self, since: datetime, limit: int) -> list[RecentTurn]:
        """Return the newest turns accepted at or after `since`, in any order."""
        chosen = select(_T.state, _T.accepted_at, _T.ended_at, _T.cost_usd)
        late = self._accepted() >= self._instant(since)
        newest = chosen.where(late).order_by(_T.accepted_at.desc()).limit(limit)
        return [RecentTurn(*(found[name] for name in RECENT)) for found in self._db.all(newest, {})]

    def rows_with_text(self, rows: Sequence[int], filters: TurnFilter) -> set[int]:
        """Return those of the given rows that match the search, the metadata and the tags."""
        statement = select(*_SEARCHED_TEXTS).where(_T.row.in_(rows))
        return {
            int(found["row"])
            for found in self._db.all(statement, {})
            if contains(found, filters.search) and has_all(found, filters.metadata, filters.prompt_tags)
        }

    def sessions(
        self, sessions: Sequence[str] | None, prefix: str, before: int | None, limit: int
    ) -> list[tuple[ListRow, int]]:
        """Return the newest turn of each session, and its number of accepted turns."""
        newest = func.max(_T.row)
        chosen = select(newest.label("row")).group_by(_T.session_id).order_by(newest.desc()).limit(limit)
        if sessions is not None:
            chosen = chosen.where(in_sessions(_T.session_id, sessions))
        if prefix:
            chosen = chosen.where(_T.session_id >= prefix, _T.session_id < prefix + "~")
        if before is not None:
            chosen = chosen.having(newest < before)
        page = chosen.subquery()
        statement = _SESSION_LISTED.join(page, page.c.row == _T.row).order_by(_T.row.desc())
        return [(_list_row(found), int(found["turns"])) for found in self._db.all(statement, {})]

    def _newest(self, limit: int, *chosen: Select[Any], by: ColumnElement[Any] = _T.row) -> list[ListRow]:
        """Return the newest rows that any of these statements selects."""
        parts = [statement.order_by(by.desc()).limit(limit).subquery() for statement in chosen]
        page = union(*(select(part.c.row) for part in parts)).subquery() if len(parts) > 1 else parts[0]
        statement = _LISTED.join(page, page.c.row == _T.row).order_by(_T.row.desc()).limit(limit)
        return [_list_row(found) for found in self._db.all(statement, {})]

    def _known(self, filters: TurnFilter, before: int | None) -> list[ColumnElement[bool]]:
        """Return the conditions on facts that SQL has for every turn."""
        known: list[ColumnElement[bool]] = []
        if before is not None:
            known.append(_T.row < before)
        if filters.session is not None:
            known.append(_T.session_id == filters.session)
        if filters.sessions is not None:
            known.append(in_sessions(_unindexed(_T.session_id), filters.sessions))
        if filters.since is not None:
            late = self._accepted() >= self._instant(filters.since)
            known += [late, _T.row >= _row_of(func.min, late)]
        if filters.until is not None:
            early = self._accepted() < self._instant(filters.until)
            known += [early, _T.row <= _row_of(func.max, early)]
        if filters.unknown:
            known.append(_UNKNOWN_CALLS > 0)
        if filters.text:
            by_key = select(_T.row).where(_T.request_key == filters.text).scalar_subquery()
            held = [_unindexed(name).contains(filters.text, autoescape=True) for name in (_T.turn_id, _T.session_id)]
            known.append(or_(*held, _T.row == by_key))
        if filters.needs_content:
            known.append(_T.row > self._searched_from(filters))
        if self._db.codec is None:  # SQL cannot search encrypted content, so each turn is read and checked here.
            known += may_have(filters.metadata, filters.prompt_tags)
            if filters.search:
                known.append(may_contain(filters.search))
        return known

    def _searched_from(self, filters: TurnFilter) -> ColumnElement[int]:
        """Return the row after which a search starts, because it reads complete requests and must not read all
        turns."""
        newest = select(func.max(_T.row))
        if filters.until is not None:
            newest = newest.where(self._accepted() < self._instant(filters.until))
        return newest.scalar_subquery() - literal_column(str(MAX_SEARCHED_TURNS))

    def _accepted(self) -> ColumnElement[Any]:
        return instants_of(self._db, _T.accepted_at)

    def _instant(self, instant: datetime) -> ColumnElement[Any]:
        return as_stored(self._db, _T.accepted_at, instant)


def _by_figures(filters: TurnFilter) -> bool:
    """Return whether the filters are on figures, which rejected turns do not have."""
    by_value = (filters.stop_reason, filters.min_cost_usd, filters.strategy)
    return filters.failing or filters.unknown or any(value is not None for value in by_value)


def _ended_states(filters: TurnFilter) -> list[str]:
    """Return the final states that match the filters; empty if no ended turn can match."""
    if filters.state == "rejected":
        return [] if _by_figures(filters) else ["rejected"]
    if filters.ending is not None:
        return [filters.ending.value]
    is_plain = filters.state is None and not _by_figures(filters)
    return [*(["rejected"] if is_plain else []), *(ending.value for ending in Ending)]


def _state_condition(filters: TurnFilter) -> ColumnElement[bool]:
    """Return the condition on a turn's state or ending, for lists that no index serves."""
    ways: list[ColumnElement[bool]] = []
    by_brain = true() if filters.brain is None else _T.brain == filters.brain
    if filters.has_live:
        ways.append(_T.state == "accepted")
    if filters.has_ended:
        ended = [_T.state != "accepted"]
        if filters.strategy is not None:
            ended.append(_decided(filters.strategy))
        if filters.state == "rejected":
            ended.append(_T.state == "rejected")
        elif filters.state == "ended" or filters.ending is not None or _by_figures(filters):
            ended.append(_T.state != "rejected")
        if filters.ending is not None:
            ended.append(_T.state == filters.ending.value)
        if filters.stop_reason is not None:
            ended.append(_T.stop_reason == filters.stop_reason.value)
        if filters.min_cost_usd is not None:
            ended.append(_T.cost_usd >= filters.min_cost_usd)
        if filters.failing:
            ended.append(or_(_T.failed_calls > 0, _T.state.in_(_FAILED), _DEAD_STEPS > 0))
        ways.append(and_(*ended))
    return and_(by_brain, or_(false(), *ways))


def _after_row(filters: TurnFilter, figure: Column[Any] | None, row: int | Figure) -> ColumnElement[bool]:
    """Return the condition for turns after this row in the requested order."""
    if isinstance(row, Figure):
        return true() if figure is None else row.is_behind(figure)
    if filters.sort == "oldest":
        return _T.row > row
    if figure is None:
        return _T.row < row
    its = select(figure).where(_T.row == row).scalar_subquery()
    return or_(figure < its, and_(figure == its, _T.row < row))


def _unindexed(column: Column[str]) -> ColumnElement[str]:
    """Return a column as an expression that no index matches, so that the database cannot choose the wrong index."""
    return column.concat(literal_column("''"))


def _row_of(least_or_most: Any, condition: ColumnElement[bool]) -> ColumnElement[int]:
    """Return the lowest or highest row with this condition. The sum keeps the database from scanning rows in order
    until one matches."""
    return select(least_or_most(_T.row + literal_column("0"))).where(condition).scalar_subquery()


def _list_row(found: Record) -> ListRow:
    reason = found["stop_reason"] or ""
    error = found["reject_reason"] or found["error"] or ""
    turn = ListedTurn.model_validate(
        {
            **{name: found[name] for name in _LISTED_FIELDS},
            **{name: found[name] or 0 for name in _COUNTS},
            "kind": found["kind"] if found["kind"] in _KINDS else "chat",
            "message": found["message"] or "",
            "note": ": ".join(part for part in (reason if reason != found["state"] else "", error) if part),
            "parent": read_parent(found["child_request"]),
        }
    )
    return ListRow(int(found["row"]), turn)
