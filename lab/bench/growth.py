"""What a session's age costs the coordinator: the same turn as its 2nd, 51st, 101st, 201st and 501st.

In one process and without Celery, as `--profile`: CPU time of the coordinator's machine alone. `new_process` is the
same turn answered by a process that has not seen the session before.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from brainq.client.client import Client
from brainq.client.connection import wiring_of
from lab.bench import brain as reference
from lab.bench.pump import drain
from lab.bench.stage import open_client

FIRST_TURNS = (2, 51, 101, 201, 501)
TURNS_EACH = 9  # of which the median counts: one in some 200 compacts the history
WARM_UP_TURNS = 30
QUESTION = "Make one note of the first three days."


def growth(directory: Path, *, scale: float = 1.0) -> dict[str, Any]:
    """Measure the coordinator's CPU ms per turn, by the turn's number in the session.

    `ratio` is the last divided by the first.
    """
    first_turns = sorted({max(2, round(first * scale)) for first in FIRST_TURNS})
    cpu_ms: dict[int, float] = {}
    with open_client(directory) as (client, _):
        for number in range(WARM_UP_TURNS):
            _turn_ms(client, f"warm-{number}")
        number = 1
        for first in first_turns:
            while number < first:
                _turn_ms(client, "grows")
                number += 1
            measured = [_turn_ms(client, "grows") for _ in range(TURNS_EACH)]
            number += TURNS_EACH
            cpu_ms[first] = statistics.median(measured)
        fresh: list[float] = []
        for _ in range(TURNS_EACH):
            with Client(wiring_of(client).settings, reference.brain) as other:
                wiring_of(other).warm_up()
                _turn_ms(other, "warm-0")
                fresh.append(_turn_ms(other, "grows"))
    return {
        "cpu_ms_by_turn": {str(first): round(value, 2) for first, value in cpu_ms.items()},
        "cpu_ms_new_process": round(statistics.median(fresh), 2),
        "ratio": round(cpu_ms[first_turns[-1]] / cpu_ms[first_turns[0]], 2),
        "ratio_new_process": round(statistics.median(fresh) / cpu_ms[first_turns[0]], 2),
    }


def _turn_ms(client: Client, session_id: str) -> float:
    client.submit(session_id, QUESTION)
    return drain(wiring_of(client), lambda: None)["coordinator"].cpu_s * 1000
