"""What Redis knows of the turns on a page of a list: two round trips, however many there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from brainq.contracts.snapshot import TurnSnapshot
from brainq.contracts.status import FAILED_CALLS, TurnState
from brainq.contracts.sweep import TurnKey
from brainq.state.connection import Client, Command
from brainq.state.keys import Keys
from brainq.state.queue_places import READS, place_of, place_reads
from brainq.state.snapshots import snapshot_of
from brainq.state.trace_rows import read_trace

MOST_CALLS = 1_000_000  # fields of a trace; a scan that may take as many takes one round trip
MOST_TOLD = 20  # open calls that a line tells of
TURN_FIELDS = (
    *(
        "state",
        "awaits",
        "step",
        "attempt",
        "fence",
        "owner",
        "lease_until",
        "ending",
        "stop_reason",
        "cancel",
    ),
    *("kind", "brain", "parked_at", "parked_ms", "fin_step", "fin_tries", "created_at", "n_calls"),
    *("priority", "max_wait_ms", "waits_for", "resumes_at"),
)
BUDGET_FIELDS = (
    *("deadline", "timeout_ms", "steps_used", "steps_max", "tool_calls_used", "tool_calls_max"),
    *("reflections_used", "reflections_max", "max_context_tokens", "input_tokens", "output_tokens"),
    *("tokens_max", "cost_usd", "cost_max_usd"),
)
CALL_FIELDS = (
    *("tool", "effect", "status", "wave", "attempt", "hash", "lanes", "dispatched_at", "started_at"),
    *("owner", "park"),
)
_OPEN = (TurnState.ACTIVE, TurnState.PARKED)


@dataclass(frozen=True, slots=True)
class LiveTurn:
    """`snapshot` without its text; its trace has the first calls of the newest step only."""

    snapshot: TurnSnapshot
    failed_calls: int


@dataclass(frozen=True, slots=True)
class LiveSession:
    """See `ListedSession`."""

    live: str | None
    waiting: int
    is_paused: bool
    flags: int


@dataclass(frozen=True, slots=True)
class RedisLiveTurns:
    """Reads of many turns, or sessions, at once."""

    client: Client
    keys: Keys

    def of(self, turns: Sequence[TurnKey]) -> list[LiveTurn | None]:
        """In their order; None for a turn that Redis does not know."""
        if not turns:
            return []
        clock, *found = self.client.many([("TIME",), *(read for turn in turns for read in self._reads(turn))])
        now_ms = int(clock[0]) * 1000 + int(clock[1]) // 1000
        known = [
            (turn, _given(TURN_FIELDS, row), _given(BUDGET_FIELDS, budget))
            for turn, row, budget in zip(turns, found[::2], found[1::2], strict=True)
        ]
        asked = [
            read for turn, row, budget in known if row and budget for read in self._further_reads(turn, row)
        ]
        more = iter(self.client.many(asked) if asked else [])
        seen: list[LiveTurn | None] = []
        for turn, row, budget in known:
            if not row or not budget:
                seen.append(None)
                continue
            place = place_of(row, [next(more) for _ in range(READS)], now_ms) if _is_queued(row) else None
            statuses, told = next(more), next(more) if _newest(row) else None
            trace = read_trace(_by_field(_newest(row), told)) if told is not None else ()
            snapshot = snapshot_of(turn, row, budget, place, now_ms, trace, "")
            failed = Counter(statuses[1][1::2])
            seen.append(LiveTurn(snapshot, sum(failed[status.value] for status in FAILED_CALLS)))
        return seen

    def sessions(self, session_ids: Sequence[str]) -> list[LiveSession]:
        """How these sessions stand, in their order."""
        if not session_ids:
            return []
        reads: list[Command] = []
        for session_id in session_ids:
            reads += [
                ("HMGET", self.keys.of_session(session_id, "session"), "live", "paused"),
                ("LLEN", self.keys.of_session(session_id, "waiting")),
                ("LLEN", self.keys.of_session(session_id, "readiness")),
            ]
        found = self.client.many(reads)
        return [
            LiveSession(row[0] or None, int(waiting), row[1] == "1", int(flags))
            for row, waiting, flags in zip(found[::3], found[1::3], found[2::3], strict=True)
        ]

    def _reads(self, turn: TurnKey) -> list[Command]:
        key = self.keys.turn(*turn)
        return [
            ("HMGET", key, *TURN_FIELDS),
            ("HMGET", key + ":budget", *BUDGET_FIELDS),
        ]

    def _further_reads(self, turn: TurnKey, row: dict[str, str]) -> list[Command]:
        """What a queued turn waits for; the statuses of all its calls, and what there is to say of those that may be
        open. A trace holds arguments and results, too, and may be large."""
        key = self.keys.turn(*turn) + ":trace"
        reads = place_reads(self.keys, turn, row.get("brain", "")) if _is_queued(row) else []
        reads.append(("HSCAN", key, 0, "MATCH", "*:status", "COUNT", MOST_CALLS))
        if calls := _newest(row):
            reads.append(("HMGET", key, *(f"{call}:{name}" for call in calls for name in CALL_FIELDS)))
        return reads


def _is_queued(row: dict[str, str]) -> bool:
    return row["state"] == TurnState.QUEUED


def _newest(row: dict[str, str]) -> list[str]:
    """The calls of the newest step of a turn that is open."""
    if row["state"] not in _OPEN:
        return []
    return [f"c{row['step']}-{at}" for at in range(min(MOST_TOLD, int(row.get("n_calls") or 0)))]


def _by_field(calls: Sequence[str], told: Sequence[str | None]) -> dict[str, str]:
    names = [f"{call}:{name}" for call in calls for name in CALL_FIELDS]
    return {name: value for name, value in zip(names, told, strict=True) if value is not None}


def _given(names: Sequence[str], values: Sequence[Any]) -> dict[str, str]:
    return {name: value for name, value in zip(names, values, strict=True) if value is not None}
