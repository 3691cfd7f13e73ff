"""`brainq fleet` in a terminal."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from brainq.cli.pages.fleet import print_fleet
from brainq.contracts.fleet import (
    Fleet,
    FleetBrain,
    FleetCapacity,
    FleetLanes,
    FleetQueue,
    FleetRedis,
    FleetSweeper,
    FleetTurns,
    FleetWorker,
    GivenUp,
    Pool,
)


def test_the_page_says_what_runs_and_what_does_not() -> None:
    fleet = Fleet(
        at_ms=1,
        pools=(
            Pool(name="serial", queues=("brainq.tools.network",)),
            Pool(
                name="parallel",
                queues=("brainq.tools.read_only",),
                workers=(FleetWorker(name="parallel@h", pool="parallel", threads=32, busy=3),),
            ),
        ),
        queues=(FleetQueue(name="brainq.turns", pool="coordinator", depth=7, oldest_age_s=90),),
        lanes=FleetLanes(held=2, waiting=1, lapsed=1),
        turns=FleetTurns(active=2, parked=1, is_whole=False, approvals=1),
        room=FleetCapacity(size=125, share=88, live=2, brains=(FleetBrain(name="lab", cap=2, live=1),)),
        sweeper=FleetSweeper(last_round_s=0.5, overdue_s=20.0),
        given_up=GivenUp(finalizer_steps=3),
        redis=FleetRedis(version="7.0.1", used_bytes=2**21, max_bytes=2**30, policy="noeviction", keeps_on_disk=True),
    )
    out = StringIO()
    print_fleet(Console(file=out, width=100, color_system=None), fleet)
    said = " ".join(out.getvalue().split())
    for part in (
        "turns 2 active, 1 parked, counting only the newest turns",
        "room 2 of 125 live, 88 per tenant; brain lab 1 of 2",
        "people 1 approval pending",
        "lanes 2 held, 1 call waiting, 1 lapsed",
        "sweeper last sweep 500 ms ago; the oldest check is 20.0 s",
        "abandoned 3 finalizer steps",
        "redis 7.0.1, 2.0 MiB of 1,024 MiB, noeviction",
        "serial 0 0 of 0",
        "parallel 1 3 of 32 parallel@h",
        "turns 7 1 min 30 s",
    ):
        assert part in said
