"""The cells' shares of models' limits, in the home cell's SQL. Each request for a share is one transaction, by the
database's clock.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import bindparam, case, select, update

from brainq.adapters.sql.database import Database, Transaction
from brainq.adapters.sql.prepared import Record
from brainq.adapters.sql.statements import insert_or_ignore, upsert
from brainq.adapters.sql.tables.cell_tables import CELL_TABLES, limit_shares
from brainq.adapters.sql.tables.types import utc_after, utc_now
from brainq.contracts.limit_share import LEASE_S, Share, ShareReport, ShareRow, decide_share, share_turn

_S = limit_shares.c
ANSWER_S = 2.0  # A short limit, so that a call that waits for a share does not hang with the home cell.
_LOCK = ""
"""The cell name, which no cell has, of a row that serves as the lock of a model."""
_MAKE_LOCK = insert_or_ignore(limit_shares)
_TAKE_LOCK = (
    update(limit_shares).where(_S.model == bindparam("of"), _S.cell == bindparam("which")).values(asked_at=utc_now())
)
_ROWS = select(*_S, utc_now().label("now")).where(_S.model == bindparam("of"))
_ALL = select(*_S, utc_now().label("now")).where(_S.cell != bindparam("lock")).order_by(_S.model, _S.cell)
_WRITE = upsert(
    limit_shares,
    ["model", "cell"],
    copied=["mark", "share", "held", "wanted"],
    changed={
        "asked_at": utc_now(),
        "asking_since": case((_S.asked_at < utc_after(-LEASE_S), utc_now()), else_=_S.asking_since),
    },
)


def home_shares(sql_url: str, cells: int) -> LimitShares:
    """Open the table in the home cell's SQL, on its own connection.

    Raises SQLAlchemy's errors if that database does not answer.
    """
    return LimitShares(CELL_TABLES.open(sql_url, pool_size=1, answer_s=ANSWER_S), cells)


class LimitShares:
    """The `limit_shares` table, in the home cell's SQL. It has one row per model and cell.

    cells: the number of cells.
    """

    def __init__(self, database: Database, cells: int) -> None:
        self._db = database
        self._cells = cells
        self._make_lock = database.pick(_MAKE_LOCK)
        self._write = database.pick(_WRITE)

    def ask(self, cell: str, report: ShareReport) -> Share | None:
        """Return the cell's new share.

        Returns None, and changes nothing, if a later report of the cell was already answered.
        """
        with self._db.transaction() as connection:
            rows, now = self._locked_rows(connection, report.model)
            mine = next((row for row in rows if row["cell"] == cell), None)
            if mine is not None and mine["mark"] >= report.mark:
                return None
            asking_s = 0.0
            if mine is not None and _ago_s(mine["asked_at"], now) <= LEASE_S:
                asking_s = _ago_s(mine["asking_since"], now)
            others = [_share_row(row) for row in rows if row["cell"] not in (cell, _LOCK)]
            turn = share_turn(now.timestamp())
            share = decide_share(cell, report, others, cells=self._cells, asking_s=asking_s, turn=turn)
            connection.write(
                self._write,
                {
                    "model": report.model,
                    "cell": cell,
                    "mark": report.mark,
                    "share": share.share,
                    "held": share.held,
                    "wanted": report.wanted,
                },
            )
            return share

    def all(self) -> dict[str, list[ShareRow]]:
        """Return the rows of all cells, by model."""
        found: dict[str, list[ShareRow]] = {}
        for row in self._db.all(_ALL, {"lock": _LOCK}):
            found.setdefault(row["model"], []).append(_share_row(row))
        return found

    def _locked_rows(self, connection: Transaction, model: str) -> tuple[list[Record], datetime]:
        connection.write(
            self._make_lock,
            {"model": model, "cell": _LOCK, "mark": 0, "share": 0, "held": 0, "wanted": 0},
        )
        connection.write(_TAKE_LOCK, {"of": model, "which": _LOCK})
        rows = connection.all(_ROWS, {"of": model})
        return rows, rows[0]["now"]


def _share_row(row: Record) -> ShareRow:
    return ShareRow(row["cell"], row["held"], row["wanted"], _ago_s(row["asked_at"], row["now"]))


def _ago_s(at: datetime, now: datetime) -> float:
    return (now - at).total_seconds()
