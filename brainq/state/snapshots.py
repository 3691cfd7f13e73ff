"""A turn as Redis knows it at one moment, for `show`, `list` and handles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from brainq.contracts.queue_place import QueuePlace
from brainq.contracts.snapshot import TurnSnapshot
from brainq.contracts.status import Awaits, Ending, StopReason, TurnState
from brainq.contracts.sweep import TurnKey
from brainq.contracts.trace import ToolTraceEntry
from brainq.state.budgets import budget_now_ms, budget_snapshot
from brainq.state.calls import RedisCalls
from brainq.state.connection import Client
from brainq.state.keys import Keys
from brainq.state.queue_places import place_of, place_reads
from brainq.state.turn_view import read_newest_text

_BRIEF = ("state", "ending", "begun", "isolated", "text")


class RedisSnapshots:
    """Whole-turn snapshots, read in one round trip plus the trace; a queued turn's place is another."""

    def __init__(self, client: Client, keys: Keys, calls: RedisCalls) -> None:
        self._client = client
        self._keys = keys
        self._calls = calls

    def of(self, session_id: str, turn_id: str) -> TurnSnapshot | None:
        """The turn's snapshot, or None when Redis does not know it."""
        key = self._keys.turn(session_id, turn_id)
        pipe = self._client.pipeline(transaction=False)
        pipe.time()
        pipe.hgetall(key)
        pipe.hgetall(key + ":budget")
        clock, turn, budget = pipe.execute()
        if not turn or not budget:
            return None
        now_ms, place = clock[0] * 1000 + clock[1] // 1000, None
        if turn["state"] == TurnState.QUEUED:
            reads = place_reads(self._keys, (session_id, turn_id), turn.get("brain", ""))
            place = place_of(turn, self._client.many(reads), now_ms)
        trace, text = self._calls.trace(session_id, turn_id), self._text(session_id, turn_id, turn)
        return snapshot_of((session_id, turn_id), turn, budget, place, now_ms, trace, text)

    def in_brief(self, session_id: str, turn_ids: Sequence[str]) -> dict[str, tuple[str, str]]:
        """State and text alone, of those that Redis knows, in one round trip; a live turn's newest text is another."""
        pipe = self._client.pipeline(transaction=False)
        for turn_id in turn_ids:
            pipe.hmget(self._keys.turn(session_id, turn_id), _BRIEF)
        found: dict[str, tuple[str, str]] = {}
        for turn_id, values in zip(turn_ids, pipe.execute() if turn_ids else (), strict=True):
            turn = {name: value for name, value in zip(_BRIEF, values, strict=True) if value is not None}
            if turn:
                found[turn_id] = (turn["state"], self._text(session_id, turn_id, turn))
        return found

    def _text(self, session_id: str, turn_id: str, turn: Mapping[str, str]) -> str:
        if "ending" in turn or not turn.get("begun"):
            return turn.get("text", "")
        return read_newest_text(self._client, self._keys, session_id, turn_id, turn.get("isolated") == "1")


def snapshot_of(
    turn: TurnKey,
    row: Mapping[str, str],
    budget: dict[str, str],
    place: QueuePlace | None,
    now_ms: int,
    trace: tuple[ToolTraceEntry, ...],
    text: str,
) -> TurnSnapshot:
    """From the fields of the turn's hashes. Pure."""
    awaits, behind = (Awaits(row["awaits"]), 0) if place is None else _waiting(place)
    return TurnSnapshot(
        turn_id=turn[1],
        session_id=turn[0],
        state=TurnState(row["state"]),
        awaits=awaits,
        step=int(row["step"]),
        attempt=int(row["attempt"]),
        fence=int(row["fence"]),
        owner=row.get("owner", ""),
        lease_remaining_ms=max(0, int(row.get("lease_until") or 0) - now_ms) if row.get("owner") else 0,
        ending=Ending(row["ending"]) if "ending" in row else None,
        stop_reason=StopReason(row["stop_reason"]) if "stop_reason" in row else None,
        cancel_requested=row.get("cancel") == "1",
        budget=budget_snapshot(budget, budget_now_ms(now_ms, row["state"], row.get("parked_at"))),
        kind=row.get("kind", "chat"),
        parked_ms=int(row.get("parked_ms") or 0)
        + (now_ms - int(row["parked_at"]) if row["state"] == "parked" else 0),
        trace=trace,
        finalizer_step=row.get("fin_step", ""),
        finalizer_tries=int(row.get("fin_tries") or 0),
        text=text,
        waiting_behind=behind,
        queue=place,
        created_at_ms=int(row["created_at"]),
        now_ms=now_ms,
        brain=row.get("brain") or None,
        waits_for=row.get("waits_for", ""),
        waits_ms=max(0, int(row.get("resumes_at") or 0) - now_ms),
    )


def _waiting(place: QueuePlace) -> tuple[Awaits, int]:
    if place.is_paused:
        return Awaits.PAUSED, place.ahead + bool(place.live)
    if place.live:
        return Awaits.SESSION, place.ahead + 1
    if place.brain and place.ahead:
        return Awaits.SESSION, place.ahead
    return Awaits.BRAIN if place.brain else Awaits.ROOM, place.ahead + (place.in_line or 0)
