"""`brainq scale` in a terminal."""

from __future__ import annotations

from io import StringIO
from typing import Any

from rich.console import Console

from brainq.cli.pages.fleet import print_scale
from brainq.contracts.fleet import FleetScale, PoolScale, StopCandidate


def pool(name: str, wanted: int, *workers: StopCandidate, **facts: int) -> PoolScale:
    draining = sum(each.draining for each in workers)
    counts: dict[str, Any] = {"queued": 0, "running": 0, "threads": 8, "load": 0, **facts}
    return PoolScale(
        pool=name, wanted=wanted, workers=len(workers) - draining, draining=draining, stop_first=workers, **counts
    )


def test_the_page_has_a_row_a_pool_and_names_those_that_are_too_many() -> None:
    drains = StopCandidate(name="serial@c", busy=1, draining=True)
    idle, busy = StopCandidate(name="serial@a", busy=0), StopCandidate(name="serial@b", busy=3)
    scale = FleetScale(
        at_ms=1,
        wanted=4,
        pools=(
            pool("parallel", 3, StopCandidate(name="parallel@a", busy=8), queued=9, running=8, oldest_age_s=75),
            pool("serial", 1, drains, idle, busy, running=3),
        ),
    )
    out = StringIO()
    print_scale(Console(file=out, width=120), scale)
    lines = [line.split() for line in out.getvalue().splitlines()]
    parallel = next(line for line in lines if line[:1] == ["parallel"])
    assert parallel == ["parallel", "3", "1", "9", "8,", "8", "a", "worker", *parallel[8:]]
    assert "parallel@a" not in out.getvalue(), "none is too many"
    (serial,) = [line for line in out.getvalue().splitlines() if line.startswith("serial")]
    assert serial.split()[:3] == ["serial", "1", "2"]
    assert "serial@c (draining), serial@a" in serial
    assert "serial@b" not in serial
