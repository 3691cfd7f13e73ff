"""Judgements: a job table on the database's own clock, whose rows end as scores."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Float, and_, bindparam, literal_column, null, select, update

from brainq.contracts.evaluation import Judgement
from brainq.contracts.model import Spend
from brainq.contracts.rows import JudgementRow
from brainq.store.database import Database, Transaction
from brainq.store.repositories.turn_records import Spends
from brainq.store.statements import insert_or_ignore
from brainq.store.tables import judgements
from brainq.store.tables.types import utc_after, utc_now

_J = judgements.c
_PENDING = _J.state == literal_column("'pending'")  # a literal: only so the partial index is used
_HERE = and_(_J.turn_id == bindparam("turn"), _J.judge == bindparam("by"))
_AFTER = utc_after(bindparam("seconds", type_=Float()))
_PLAN = insert_or_ignore(judgements)
_CLAIM = (
    update(judgements)
    .where(_HERE, _PENDING, _J.due_at <= utc_now())
    .values(tries=_J.tries + 1, due_at=_AFTER, updated_at=utc_now())
    .returning(_J.tries)
)
_SETTLE = update(judgements).where(_HERE, _PENDING).values(state="done", error=null(), updated_at=utc_now())
_OF_TRY = (
    update(judgements).where(_HERE, _PENDING, _J.tries == bindparam("nth")).values(due_at=_AFTER, updated_at=utc_now())
)
_REVIVE = (
    update(judgements)
    .where(_HERE, _J.state == "dead")
    .values(state="pending", tries=0, due_at=utc_now(), updated_at=utc_now())
)
_DUE = (
    select(_J.session_id, _J.turn_id, _J.judge)
    .where(_PENDING, _J.due_at <= _AFTER)
    .order_by(_J.due_at)
    .limit(bindparam("most"))
)
_OF = select(judgements).where(_J.turn_id == bindparam("turn")).order_by(_J.judge)


class Judgements:
    """The `judgements` table. A judgement is `pending` until it is `done` (scored) or `dead` (given up)."""

    def __init__(self, database: Database, spends: Spends) -> None:
        self._db = database
        self._spends = spends
        self._plan = database.pick(_PLAN)

    def plan(self, connection: Transaction, session_id: str, turn_id: str, names: Sequence[str]) -> None:
        """Effect: the turn is to be judged by these; those it has already stay as they are."""
        if names:
            row = {"session_id": session_id, "turn_id": turn_id, "state": "pending"}
            connection.write_many(self._plan, [{**row, "judge": name} for name in names])

    def claim(self, turn_id: str, judge: str, lease_s: float) -> int | None:
        """Take a judgement for `lease_s`: which try this is, from 1. None: it is taken, settled, dead, unknown, or
        its next try is not due yet. One statement: of several at once, one gets it."""
        values = {"turn": turn_id, "by": judge, "seconds": lease_s}
        found = self._db.write_returning(_CLAIM, values)
        return None if found is None else int(found["tries"])

    def beat(self, turn_id: str, judge: str, tries: int, lease_s: float) -> bool:
        """Keep it for another `lease_s`. False: a later try has it, or it is settled."""
        values = {"turn": turn_id, "by": judge, "nth": tries, "seconds": lease_s}
        return self._db.write(_OF_TRY, values) == 1

    def settle(self, turn_id: str, judge: str, judgement: Judgement, spends: Sequence[Spend] = ()) -> bool:
        """Write the score. False, and nothing changed, unless it was pending: the first score stays, also when
        a try whose lease had run out comes later with another. What its models used is kept with the score, once;
        where nothing was counted the tokens are those that the judgement names."""
        values = {
            "turn": turn_id,
            "by": judge,
            "score": judgement.score,
            "reason": judgement.reason,
            "method": judgement.method,
            "model": judgement.model,
            "input_tokens": sum(spend.input_tokens for spend in spends) if spends else judgement.input_tokens,
            "output_tokens": sum(spend.output_tokens for spend in spends) if spends else judgement.output_tokens,
            "cost_usd": _sum_or_none(spends),
        }
        if not spends:
            return self._db.write(_SETTLE, values) == 1
        with self._db.transaction() as connection:
            settled = connection.write(_SETTLE, values) == 1
            if settled:
                self._spends.add(connection, turn_id, spends)
        return settled

    def fail(self, turn_id: str, judge: str, error: str, again_after_s: float, dead: bool, tries: int) -> bool:
        """A try failed: the next is due after `again_after_s`, or (`dead`) there is none.

        `tries` is the number that `claim` gave: a try that lost its lease to a later one changes nothing.
        """
        values = {
            "turn": turn_id,
            "by": judge,
            "nth": tries,
            "seconds": again_after_s,
            "state": "dead" if dead else "pending",
            "error": error,
        }
        return self._db.write(_OF_TRY, values) == 1

    def postpone(self, turn_id: str, judge: str, why: str, again_after_s: float, tries: int) -> bool:
        """A try was not made, and does not count: the next is due after `again_after_s`. As `fail` else."""
        values = {
            "turn": turn_id,
            "by": judge,
            "nth": tries,
            "seconds": again_after_s,
            "tries": tries - 1,
            "error": why,
        }
        return self._db.write(_OF_TRY, values) == 1

    def revive(self, turn_id: str, judge: str) -> bool:
        """A dead judgement is due again, its tries counted anew; False if it was not dead."""
        return self._db.write(_REVIVE, {"turn": turn_id, "by": judge}) == 1

    def due(self, older_than_s: float, limit: int) -> list[tuple[str, str, str]]:
        """(session, turn, judge) of judgements that no try holds and that have been due for this long, the
        longest first."""
        found = self._db.all(_DUE, {"seconds": -older_than_s, "most": limit})
        return [(row["session_id"], row["turn_id"], row["judge"]) for row in found]

    def of_turn(self, turn_id: str) -> list[JudgementRow]:
        """The turn's judgements, by the judge's name."""
        return [JudgementRow(**found) for found in self._db.all(_OF, {"turn": turn_id})]


def _sum_or_none(spends: Sequence[Spend]) -> float | None:
    """None where the price of one is not known."""
    known = [spend.cost_usd for spend in spends if spend.cost_usd is not None]
    return sum(known) if spends and len(known) == len(spends) else None
