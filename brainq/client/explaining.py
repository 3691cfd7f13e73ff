"""What happens next to a turn, and why, in one sentence: from Redis while it is there, else from what SQL says."""

from __future__ import annotations

from brainq.contracts.rows import TurnRow
from brainq.contracts.snapshot import TurnSnapshot
from brainq.settings import Settings
from brainq.state.workers import RedisWorkers
from brainq.turn.explain import explain


def what_next(
    row: TurnRow, snapshot: TurnSnapshot | None, settings: Settings, workers: RedisWorkers | None
) -> str:
    """One sentence without a full stop; `snapshot` None: Redis does not know the turn."""
    if snapshot is not None:
        alive = None if workers is None else {worker.pool for worker in workers.alive()}
        return explain(snapshot, sweep_s=settings.sweep_s, rering_s=settings.rering_s, alive=alive)
    if row.state == "rejected":
        return "rejected when it was submitted; it never ran"
    if row.ended_at is not None:
        return f"ended as {row.state}; nothing more happens, Redis has let it go and SQL keeps what was said"
    return "accepted in SQL and not in Redis: a sweeper puts it there within seconds, if a coordinator runs"
