"""Forward turns and input that a cell accepted after their tenant had moved to another cell.

Rows are forwarded one by one under the same ids: written to the other cell's database, then deleted from this one. If
the sender dies in between, the sweeper repeats it, and rows that have arrived are left unchanged.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Executable, Table, bindparam, delete, select

from brainq.adapters.sql.database import Database
from brainq.adapters.sql.repositories.blobs import unlink
from brainq.adapters.sql.tables import attachments, blobs, brakes, inputs, turns
from brainq.contracts.cell import tenant_key
from brainq.contrib.cells.placements import Tombstones
from brainq.contrib.cells.tenant_rows import TenantRows

_TURN = bindparam("turn")
_BY_TURN: dict[Table, Executable] = {
    table: select(table).where(table.c.turn_id == _TURN) for table in (attachments, inputs, brakes, turns)
}
_ROWS = bindparam("rows", expanding=True)
_DELETED: dict[Table, Executable] = {
    table: delete(table).where(table.c.row.in_(_ROWS)) for table in (inputs, brakes, turns)
}
_BLOBS = select(blobs).where(blobs.c.sha256 == bindparam("sha256"))
_ONE_INPUT = (inputs.c.session_id == bindparam("session"), inputs.c.client_message_id == bindparam("message"))
_INPUT = select(inputs).where(*_ONE_INPUT)
_INPUT_DELETED = delete(inputs).where(*_ONE_INPUT)


class LateRows:
    """Rows that came too late to be moved with their tenant.

    open_cell: returns the database of another cell, by its name.
    """

    def __init__(self, database: Database, open_cell: Callable[[str], Database]) -> None:
        self._db = database
        self._open = open_cell

    def send_turn(self, turn_id: str, cell: str) -> None:
        """Forward a turn. Its files go first and its row last, so that the turn is never visible without what it needs.
        After that, no later turn of its session is queued in the other cell before it."""
        other = self._open(cell)
        self._send_files(turn_id, other)
        sent: dict[Table, list[int]] = {}
        for table in _DELETED:
            rows = self._db.all(_BY_TURN[table], {"turn": turn_id})
            TenantRows(other).put(table, rows)
            sent[table] = [row["row"] for row in rows]
            if rows and table is turns:
                Tombstones(other).arrive_late(tenant_key(rows[0]["session_id"]), cell)
        with self._db.transaction() as connection:
            for table, rows in sent.items():
                connection.write(_DELETED[table], {"rows": rows})
            unlink(connection, [turn_id])

    def send_input(self, session_id: str, client_message_id: str, cell: str) -> None:
        """Forward an input. The other cell's sweeper, or the next sender, puts it into its turn's mailbox or makes it a
        turn."""
        other, values = self._open(cell), {"session": session_id, "message": client_message_id}
        rows = self._db.all(_INPUT, values)
        if not rows:
            return
        self._send_files(rows[0]["turn_id"], other)
        TenantRows(other).put(inputs, rows)
        Tombstones(other).arrive_late(tenant_key(session_id), cell)
        self._db.write(_INPUT_DELETED, values)

    def _send_files(self, turn_id: str, other: Database) -> None:
        links = self._db.all(_BY_TURN[attachments], {"turn": turn_id})
        for link in links:
            TenantRows(other).put(blobs, self._db.all(_BLOBS, {"sha256": link["sha256"]}))
        if links:
            TenantRows(other).put(attachments, links)
