"""Judgements: jobs whose rows end as scores."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import bindparam, null, select

from brainq.adapters.sql.database import Database, Transaction
from brainq.adapters.sql.jobs import JobTable
from brainq.adapters.sql.repositories.turn_records import Spends
from brainq.adapters.sql.statements import insert_or_ignore
from brainq.adapters.sql.tables import judgements
from brainq.contracts.evaluation import Judgement
from brainq.contracts.model import Spend
from brainq.contracts.rows import JudgementRow
from brainq.engine.jobs import job_key

_PLAN = insert_or_ignore(judgements)
_OF = select(judgements).where(judgements.c.turn_id == bindparam("turn")).order_by(judgements.c.judge)


class Judgements(JobTable):
    """The `judgements` table. A judgement is `pending` until it is `done` (scored) or `dead` (given up)."""

    def __init__(self, database: Database, spends: Spends) -> None:
        super().__init__(database, judgements, {"turn": "turn_id", "by": "judge"})
        self._spends = spends
        self._plan = database.pick(_PLAN)
        self._settle = self.settling({"state": "done", "error": null()})

    def plan(self, connection: Transaction, session_id: str, turn_id: str, names: Sequence[str]) -> None:
        """Effect: plan a judgement of the turn by each of these judges. Those that it has stay as they are."""
        if names:
            row = {"session_id": session_id, "turn_id": turn_id, "state": "pending"}
            connection.write_many(self._plan, [{**row, "judge": name} for name in names])

    def settle(self, turn_id: str, judge: str, judgement: Judgement, spends: Sequence[Spend] = ()) -> bool:
        """Write the score, and, once, what the judge's models used.

        Returns False, and changes nothing, unless the judgement was pending: the first score stays, also if a try whose
        lease had run out comes later with another. If no tokens were counted, they are those that the judgement names.
        """
        values = {
            **job_key(turn_id, judge),
            "score": judgement.score,
            "reason": judgement.reason,
            "method": judgement.method,
            "model": judgement.model,
            "input_tokens": sum(spend.input_tokens for spend in spends) if spends else judgement.input_tokens,
            "output_tokens": sum(spend.output_tokens for spend in spends) if spends else judgement.output_tokens,
            "cost_usd": _sum_or_none(spends),
        }
        if not spends:
            return self._db.write(self._settle, values) == 1
        with self._db.transaction() as connection:
            settled = connection.write(self._settle, values) == 1
            if settled:
                self._spends.add(connection, turn_id, spends)
        return settled

    def of_turn(self, turn_id: str) -> list[JudgementRow]:
        """Return the turn's judgements, by the judge's name."""
        return [JudgementRow(**found) for found in self._db.all(_OF, {"turn": turn_id})]


def _sum_or_none(spends: Sequence[Spend]) -> float | None:
    """Return what the calls cost. Returns None if there are none, or the price of one is not known."""
    known = [spend.cost_usd for spend in spends if spend.cost_usd is not None]
    return sum(known) if spends and len(known) == len(spends) else None
