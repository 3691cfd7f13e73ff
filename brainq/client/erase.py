"""Erase a session or a tenant: end its turns, delete all its data from Redis and SQL, and check
that nothing is left.
"""

from __future__ import annotations

import time
from collections import Counter
from datetime import UTC, datetime

from brainq.adapters.redis.erase import RedisErasure
from brainq.adapters.sql.erase import SqlErasure
from brainq.app.wiring import Wiring
from brainq.app.wiring.cells import Cells
from brainq.client.waiting import cancel_turn
from brainq.contracts.cell import tenant_key
from brainq.contracts.erasure import Erasure, ErasureScope
from brainq.contracts.ids import tenant_of
from brainq.contracts.status import Awaits
from brainq.errors import ResultTimeout
from brainq.runtime.settings.extensions import load_extension

POLL_S = 0.2
RECENT_S = 3600.0  # Finalizers may still be working on turns that ended within this time.
SETTLE_LOOKS = 5
"""The number of times that rows are deleted again which a last finalizer step wrote meanwhile."""


def erase_everywhere(cells: Cells, scope: ErasureScope, *, by: str = "", wait_s: float = 60.0) -> Erasure:
    """Run `erase` in every cell, one after the other, then delete the tenant's entry in the directory and its content
    keys. Returns one receipt."""
    receipt = _erase_each(cells, scope, by=by, wait_s=wait_s)
    stores = [wiring.store for _, wiring in cells.each()]
    is_whole_tenant = scope.is_tenant and scope.name == tenant_of(scope.name)
    if not is_whole_tenant or all(store.database.codec is None for store in stores):
        return receipt
    # Do this after all rows are deleted, because ending the turns wrote rows, which would use a newer key.
    gone = load_extension("brainq.encryption", "erase_keys")(stores, scope.name)
    if not gone:
        return receipt
    return receipt.model_copy(update={"rows": {**receipt.rows, "tenant_keys": gone}, "ended_at": datetime.now(UTC)})


def _erase_each(cells: Cells, scope: ErasureScope, *, by: str, wait_s: float) -> Erasure:
    receipts = [(name, erase(wiring, scope, by=by, wait_s=wait_s)) for name, wiring in cells.each()]
    if len(receipts) == 1:
        return receipts[0][1]
    rows = Counter[str]()
    for _, receipt in receipts:
        rows.update(receipt.rows)
    if scope.name == tenant_key(scope.name):
        rows["tenant_cells"] = cells.forget_tenant(scope.name)
    first, last = receipts[0][1], receipts[-1][1]
    return first.model_copy(
        update={
            "ended_at": last.ended_at,
            "turns": rows["turns"],
            "rows": {name: count for name, count in sorted(rows.items()) if count},
            "keys": sum(receipt.keys for _, receipt in receipts),
            "left": {f"{name}: {where}": n for name, receipt in receipts for where, n in receipt.left.items()},
            "notes": tuple(f"{name}: {note}" for name, receipt in receipts for note in receipt.notes),
        }
    )


def erase(wiring: Wiring, scope: ErasureScope, *, by: str = "", wait_s: float = 60.0) -> Erasure:
    """End the scope's turns, delete all its data, and check that nothing is left. Safe to run again.

    wait_s   the seconds that its turns have to end after they were cancelled

    Raises ResultTimeout, before anything is deleted, if a turn does not end; Unreachable.
    """
    began = datetime.now(UTC)
    sql, redis = SqlErasure(wiring.store.database, scope), RedisErasure(wiring.state.redis, wiring.state.keys, scope)
    _end_turns(wiring, sql, scope, wait_s)
    rows, keys, left = Counter[str](), 0, dict[str, int]()
    for _ in range(SETTLE_LOOKS):
        rows.update(sql.erase())
        keys += redis.erase()
        left = dict(sql.left())
        if in_redis := redis.left():
            left["redis"] = in_redis
        if not left:
            break
        time.sleep(POLL_S)
    notes = tuple(filter(None, (sql.scrub(), redis.rewrite_file())))
    return Erasure(
        scope=scope.name,
        is_tenant=scope.is_tenant,
        by=by,
        began_at=began,
        ended_at=datetime.now(UTC),
        turns=rows["turns"],
        rows={name: count for name, count in sorted(rows.items()) if count},
        keys=keys,
        left=left,
        notes=notes,
    )


def _end_turns(wiring: Wiring, sql: SqlErasure, scope: ErasureScope, wait_s: float) -> None:
    """Cancel live and queued turns, and wait until none is open and no finalizer writes."""
    end = time.monotonic() + wait_s
    while True:
        open_turns = sql.open_turns()
        for session_id, turn_id in open_turns:
            cancel_turn(wiring, session_id, turn_id, "erased")
        closing = [(sid, tid) for sid, tid in sql.ended_turns(RECENT_S) if _is_closing(wiring, sid, tid)]
        if not open_turns and not closing:
            return
        if time.monotonic() > end:
            names = ", ".join(turn_id for _, turn_id in [*open_turns, *closing][:3])
            raise ResultTimeout(
                f"{len(open_turns) + len(closing)} turns of {scope} are not over after {wait_s:g} s, such as {names}; "
                "nothing was erased. Workers end them: see that all four pools run (`brainq fleet`), and erase again"
            )
        time.sleep(POLL_S)


def _is_closing(wiring: Wiring, session_id: str, turn_id: str) -> bool:
    snapshot = wiring.state.snapshots.read(session_id, turn_id)
    return snapshot is not None and snapshot.awaits is not Awaits.NOBODY
