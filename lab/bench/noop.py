"""What Celery alone takes: tasks that do nothing, on the same workers in the same run.

A turn's CPU time divided by theirs says more than either does: the machine's own speed, which drifts, is in both.
"""

from __future__ import annotations

import time

from brainq.adapters.celery import names
from brainq.adapters.celery.envelope import envelope
from brainq.client.connection import wiring_of
from brainq.contracts.ids import new_turn_id
from lab.bench.counters import read_counters
from lab.bench.noop_task import NOOP
from lab.bench.outcomes import BenchFailure
from lab.bench.stage import Stage

TASKS_A_TURN = {names.TURNS_QUEUE: 2, names.READ_ONLY_QUEUE: 3, names.LOCAL_WRITE_QUEUE: 1, names.FINALIZE_QUEUE: 8}
"""As many to each queue as the parts of a reference turn."""

AT_ONCE = 500
WARM_UP_TURNS, FEWEST_TURNS = 5, 100  # CPU time is read in steps of 10 ms
PATIENCE_S, POLL_S = 60.0, 0.02


def noop_ms(on: Stage, turns: int) -> float:
    """Return the CPU ms of all workers and Redis for 14 no-op tasks: 14 times the mean over `turns` tasks, of at least
    100. Sending is not included."""
    turns = max(turns, FEWEST_TURNS)
    _run(on, WARM_UP_TURNS)
    before = read_counters(on)
    _run(on, turns)
    return sum(read_counters(on).since(before).cpu_s.values()) * 1000 / turns


def _run(on: Stage, turns: int) -> None:
    """Send them all at once, and wait until the last of each queue has run. Raises BenchFailure after a minute."""
    root = new_turn_id()
    waited_for = [on.done_in / f"{root}.{number}" for number in range(len(TASKS_A_TURN))]
    for done, (queue, count) in zip(waited_for, TASKS_A_TURN.items(), strict=True):
        bells = [envelope(NOOP, [], f"{root}.noop", queue, root)] * (turns * count)
        bells.append(envelope(NOOP, [done.name], f"{root}.done", queue, root))
        key = names.queue_key(wiring_of(on.client).settings, queue)
        for start in range(0, len(bells), AT_ONCE):
            wiring_of(on.client).state.redis.lpush(key, *bells[start : start + AT_ONCE])
    end = time.monotonic() + PATIENCE_S
    while not all(done.exists() for done in waited_for):
        on.check_alive()
        if time.monotonic() > end:
            raise BenchFailure(f"no-op tasks have not ended in {PATIENCE_S:g} s")
        time.sleep(POLL_S)
