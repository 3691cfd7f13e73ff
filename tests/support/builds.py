"""The announcement of a worker of a build that does not exist."""

from __future__ import annotations

from brainq.app.wiring import Wiring
from brainq.contracts.build import DeclaredBrain, WorkerBuild
from brainq.contracts.fleet import FleetWorker


def announce(
    wiring: Wiring, build: str, digest: str, pool: str = "coordinator", *, threads: int = 1, busy: int = 0
) -> None:
    """Announce, for a minute, a worker of this pool whose only brain is `shop`, pinned for a turn."""
    state, name = wiring.state, f"{pool}@{build}"
    worker = FleetWorker(name=name, pool=pool, threads=threads, busy=busy)
    state.workers.announce(name, worker, 60)
    declared = WorkerBuild(build, (DeclaredBrain("shop", digest, "turn"),), is_distinct=True)
    state.builds.announce(name, declared, pool, ["turns"], 60.0)
