"""Submitting turns, each in a session of its own, at once or at a steady rate."""

from __future__ import annotations

import time
from dataclasses import dataclass

from brainq.client.client import Client
from brainq.contracts.ids import new_turn_id


@dataclass(frozen=True, slots=True)
class Submitted:
    """A turn, and when its submit began: ms of this machine's clock, which is the embedded Redis's `TIME`."""

    session_id: str
    turn_id: str
    at_ms: float


@dataclass(frozen=True, slots=True)
class Load:
    """The turns of a scenario, and the CPU time the producer spent on them, seconds."""

    turns: tuple[Submitted, ...]
    producer_cpu_s: float


def submit(client: Client, count: int, *, per_s: float | None = None) -> Load:
    """Submit `count` turns from this thread, as fast as it can or `per_s` a second.

    When it falls behind its rate it catches up at once, so that slow submits do not thin out the load.
    """
    turns: list[Submitted] = []
    cpu_s = time.thread_time()
    begin = time.monotonic()
    for number in range(count):
        if per_s is not None:
            time.sleep(max(0.0, begin + number / per_s - time.monotonic()))
        turn_id = new_turn_id()
        session_id = f"s-{turn_id}"
        at_ms = time.time() * 1000
        client.submit(session_id, "Make one note of the first three days.", turn_id=turn_id)
        turns.append(Submitted(session_id, turn_id, at_ms))
    return Load(tuple(turns), time.thread_time() - cpu_s)
