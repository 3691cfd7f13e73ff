"""What became of submitted turns: waiting for their whole chain, checking them, their times."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from brainq.client.connection import wiring_of
from brainq.contracts.event import EventKind
from brainq.contracts.status import Ending, TraceStatus
from brainq.contracts.turn import TurnResult
from lab.bench import brain as reference
from lab.bench.load import Submitted
from lab.bench.stage import Stage

POLL_S = 0.02
PATIENCE_S, SLOWEST_TURNS_PER_S = 60.0, 2.0
AT_ONCE = 100


class BenchFailure(Exception):
    """A turn did not end as the reference turn must: the figures would mean nothing."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The times of one turn, in ms from its submit."""

    to_first_step_ms: float
    to_result_ms: float
    result_at_ms: int


Events = Sequence[tuple[str, dict[str, str]]]
Check = Callable[[Stage, Submitted, TurnResult, Events], None]
"""Raises BenchFailure for a turn that is not what it must be."""


def wait_finished(stage: Stage, turns: Sequence[Submitted]) -> int:
    """Wait until the last finalizer step of every turn is done; returns how many commands it took.

    It asks for one turn at a time, in the order of submit, so as not to load the Redis that is measured.
    Raises BenchFailure after a minute plus half a second a turn: slower is standing still.
    """
    redis, keys = wiring_of(stage.client).state.redis, wiring_of(stage.client).state.keys
    asked = 0
    # Counted from the load's begin: the pools work through all turns abreast, so the first may end near the last.
    limit_s = PATIENCE_S + len(turns) / SLOWEST_TURNS_PER_S
    end = time.monotonic() + limit_s
    for turn in turns:
        while True:
            asked += 1
            if redis.hget(keys.turn(turn.session_id, turn.turn_id), "awaits") == "nobody":
                break
            stage.check_alive()
            if time.monotonic() > end:
                seen = stage.client.handle(turn.turn_id).snapshot()
                raise BenchFailure(f"turn {turn.turn_id} has not finished in {limit_s:g} s: {seen!r}")
            time.sleep(POLL_S)
    return asked


def check_reference(stage: Stage, turn: Submitted, result: TurnResult, events: Events) -> None:
    """Check that the turn is a complete reference turn."""
    wiring = wiring_of(stage.client)
    trace = wiring.state.calls.trace(turn.session_id, turn.turn_id)
    in_sql = wiring.store.turns.result(turn.turn_id)
    checks = {
        "it completed": result.ending is Ending.COMPLETED,
        "its text is the model's answer": result.text == reference.ANSWER,
        "it made two model steps": result.steps == reference.MODEL_STEPS,
        "it made four tool calls": result.tool_calls == reference.TOOL_CALLS,
        "every call completed": [entry.status for entry in trace] == [TraceStatus.COMPLETED] * reference.TOOL_CALLS,
        "nothing was tried twice": all(entry.attempt == 1 for entry in trace),
        "its events have no gap": [number for number, _ in events]
        == [f"{number}-0" for number in range(1, len(events) + 1)],
        "there is one final event": sum(f["kind"] == EventKind.RESULT for _, f in events) == 1,
        "SQL has its result": in_sql is not None and in_sql.text == result.text,
        "SQL has its decision": wiring.store.decisions.get(turn.turn_id) is not None,
    }
    if failed := [what for what, holds in checks.items() if not holds]:
        raise BenchFailure(f"turn {turn.turn_id}: not true that {'; that '.join(failed)}: {result!r}")


def read_outcomes(stage: Stage, turns: Sequence[Submitted], check: Check = check_reference) -> list[Outcome]:
    """Check every turn and read its times. Raises BenchFailure for a turn without a result, and what `check` raises."""
    found: list[Outcome] = []
    for part in _parts(turns):
        for turn, body, events in _read(stage, part):
            if body is None:
                raise BenchFailure(f"turn {turn.turn_id} has no result")
            check(stage, turn, TurnResult.model_validate_json(body), events)
            at = {fields["kind"]: int(fields["at"]) for _, fields in reversed(events)}
            found.append(
                Outcome(
                    to_first_step_ms=at[EventKind.STEP_STARTED] - turn.at_ms,
                    to_result_ms=at[EventKind.RESULT] - turn.at_ms,
                    result_at_ms=at[EventKind.RESULT],
                )
            )
    return found


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the nearest-rank percentile: a measured value, never one between two."""
    ordered = sorted(values)
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(0, int(rank) - 1)]


def _parts(turns: Sequence[Submitted]) -> Iterator[Sequence[Submitted]]:
    for start in range(0, len(turns), AT_ONCE):
        yield turns[start : start + AT_ONCE]


def _read(stage: Stage, turns: Sequence[Submitted]) -> Iterator[tuple[Submitted, str | None, Events]]:
    keys = wiring_of(stage.client).state.keys
    pipe = wiring_of(stage.client).state.redis.pipeline(transaction=False)
    for turn in turns:
        key = keys.turn(turn.session_id, turn.turn_id)
        pipe.get(key + ":result")
        pipe.xrange(key + ":events")
    replies = pipe.execute()
    for index, turn in enumerate(turns):
        yield turn, replies[2 * index], replies[2 * index + 1]
