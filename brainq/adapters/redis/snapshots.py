"""Turns as Redis knows them at one moment, one or a page of a list, with a queued turn's position."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from brainq.adapters.redis.builds import SERVED_FOR_S, RedisBuilds
from brainq.adapters.redis.calls import RedisCalls
from brainq.adapters.redis.connection import Client, Command
from brainq.adapters.redis.keys import Keys
from brainq.adapters.redis.transcripts import read_trace
from brainq.adapters.redis.turn_steps import budget_now_ms, budget_snapshot
from brainq.adapters.redis.turn_view import read_newest_text
from brainq.contracts.call import ToolTraceEntry
from brainq.contracts.fleet import TurnKey
from brainq.contracts.ids import prefix_upper_bound, tenant_of
from brainq.contracts.status import FAILED_CALLS, Awaits, Ending, StopReason, TraceStatus, TurnState
from brainq.contracts.turn import Priority
from brainq.contracts.view import QueuePosition, TurnSnapshot

POSITION_COMMANDS = 10  # The number of reads for the position of one queued turn and for what delays it.
_BRIEF = ("state", "ending", "begun", "isolated", "text")
# The maximum number of fields of a trace; a scan that may return as many takes one round trip.
MAX_TRACE_FIELDS = 1_000_000
MAX_SHOWN_CALLS = 20  # The maximum number of open calls in a line.
TURN_FIELDS = (
    *("state", "awaits", "step", "attempt", "fence", "owner", "lease_until", "ending", "stop_reason", "cancel"),
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
    *("owner", "park", "stop"),
)
_OPEN_STATES = (TurnState.ACTIVE, TurnState.PARKED)


def brain_commands(keys: Keys, brain: str) -> list[Command]:
    """Return the commands that read a brain's cap and its number of live turns."""
    return [("HGET", keys.room, f"brain {brain}"), ("ZLEXCOUNT", keys.room_live, f"[ {brain} ", f"( {brain}!")]


def position_commands(keys: Keys, turn: TurnKey, brain: str) -> list[Command]:
    """Return the POSITION_COMMANDS commands whose replies `read_position` parses. `brain` is the turn's brain, or
    ""."""
    session_id, turn_id = turn
    tenant = tenant_of(session_id)
    return [
        ("HMGET", keys.of_session(session_id, "session"), "live", "paused", "paused_at", "paused_why"),
        ("LPOS", keys.of_session(session_id, "waiting"), turn_id),
        ("ZRANK", keys.room_line(session_id), session_id),
        ("HMGET", keys.room, "all", "tenant", tenant),
        ("ZLEXCOUNT", keys.room_live, "[!", "+"),
        ("ZLEXCOUNT", keys.room_live, f"[{tenant}", f"({prefix_upper_bound(tenant)}"),
        ("HGET", keys.room_brains, session_id),
        ("ZRANK", keys.capacity_deferred(brain, session_id), session_id),
        *brain_commands(keys, brain),
    ]


def read_position(row: Mapping[str, str], replies: Sequence[Any], now_ms: int) -> QueuePosition | None:
    """Return the queue position of the turn with the fields `row`, or None if it no longer waits. Pure."""
    (live, paused, paused_at, paused_why), ahead, in_line, (size, share, own), all_live, its_live = replies[:6]
    waits_for, aside, cap, brain_live = replies[6:]
    waits_for = waits_for if in_line is None else None
    is_its_own = waits_for is not None and waits_for == row.get("brain")
    if ahead is None:
        return None
    share = own or share
    full: Literal["", "fleet", "tenant"] = ""
    if size and all_live >= int(size):
        full = "fleet"
    elif share and its_live >= int(share):
        full = "tenant"
    max_wait_ms = row.get("max_wait_ms")
    return QueuePosition(
        live=live or "",
        ahead=ahead,
        is_paused=paused == "1",
        paused_ms=max(0, now_ms - int(paused_at)) if paused_at else 0,
        paused_why=paused_why or "",
        ahead_for_capacity=in_line if waits_for is None else aside or 0,
        full=full,
        brain=waits_for or "",
        brain_live=brain_live if is_its_own else 0,
        brain_cap=int(cap or 0) if is_its_own else 0,
        share=int(share) if share else None,
        priority=cast(Priority, row.get("priority") or "normal"),
        gives_up_ms=max(0, int(row["created_at"]) + int(max_wait_ms) - now_ms) if max_wait_ms else None,
    )


class RedisSnapshots:
    """A reader of turn snapshots: one round trip plus the trace, and another for a queued turn's position."""

    def __init__(self, client: Client, keys: Keys, calls: RedisCalls) -> None:
        self._client = client
        self._keys = keys
        self._calls = calls

    def read(self, session_id: str, turn_id: str) -> TurnSnapshot | None:
        """Return the turn's snapshot, or None if it is not in Redis."""
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
            reads = position_commands(self._keys, (session_id, turn_id), turn.get("brain", ""))
            place = read_position(turn, self._client.many(reads), now_ms)
        trace, text = self._calls.trace(session_id, turn_id), self._text(session_id, turn_id, turn)
        snapshot = read_snapshot((session_id, turn_id), turn, budget, place, now_ms, trace, text)
        if "pin" not in turn or "ending" in turn:
            return snapshot
        return snapshot.model_copy(update={"waits_for_build": self._missing_build(turn)})

    def _missing_build(self, turn: Mapping[str, str]) -> str:
        """Return the build whose brain a pinned turn waits for, or "" if a coordinator has it."""
        builds = RedisBuilds(self._client, self._keys)
        digests = [digest for digest in (turn["pin"], builds.released().get(turn["pin"])) if digest]
        away = builds.unserved_s(digests).values()
        return "" if any(s is not None and s <= SERVED_FOR_S for s in away) else turn.get("pin_build", "")

    def read_brief(self, session_id: str, turn_ids: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Return state and text of the turns in Redis, in one round trip, and one more for the text of live turns."""
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


def read_snapshot(
    turn: TurnKey,
    row: Mapping[str, str],
    budget: dict[str, str],
    place: QueuePosition | None,
    now_ms: int,
    trace: tuple[ToolTraceEntry, ...],
    text: str,
) -> TurnSnapshot:
    """Build a snapshot from the fields of the turn's hashes. Pure."""
    awaits, behind = (Awaits(row["awaits"]), 0) if place is None else _waiting_behind(place)
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
        parked_ms=int(row.get("parked_ms") or 0) + (now_ms - int(row["parked_at"]) if row["state"] == "parked" else 0),
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


def _waiting_behind(place: QueuePosition) -> tuple[Awaits, int]:
    if place.is_paused:
        return Awaits.PAUSED, place.ahead + bool(place.live)
    if place.live:
        return Awaits.SESSION, place.ahead + 1
    if place.brain and place.ahead:
        return Awaits.SESSION, place.ahead
    return Awaits.BRAIN if place.brain else Awaits.ROOM, place.ahead + (place.ahead_for_capacity or 0)


@dataclass(frozen=True, slots=True)
class LiveTurn:
    """A snapshot without its text, whose trace has only the first calls of the newest step."""

    snapshot: TurnSnapshot
    failed_calls: int
    unknown_calls: int


@dataclass(frozen=True, slots=True)
class LiveSession:
    """A session's state in Redis; see `ListedSession`."""

    live: str | None
    waiting: int
    is_paused: bool
    flags: int


@dataclass(frozen=True, slots=True)
class RedisLiveTurns:
    """A reader of the turns or sessions on a page of a list. It takes two round trips, however many there are."""

    client: Client
    keys: Keys

    def read_turns(self, turns: Sequence[TurnKey]) -> list[LiveTurn | None]:
        """Return the turns in the given order, with None for a turn that is not in Redis."""
        if not turns:
            return []
        clock, *found = self.client.many([("TIME",), *(read for turn in turns for read in self._reads(turn))])
        now_ms = int(clock[0]) * 1000 + int(clock[1]) // 1000
        known = [
            (turn, _present(TURN_FIELDS, row), _present(BUDGET_FIELDS, budget))
            for turn, row, budget in zip(turns, found[::2], found[1::2], strict=True)
        ]
        reads = [read for turn, row, budget in known if row and budget for read in self._further_reads(turn, row)]
        more = iter(self.client.many(reads) if reads else [])
        snapshots: list[LiveTurn | None] = []
        for turn, row, budget in known:
            if not row or not budget:
                snapshots.append(None)
                continue
            place = (
                read_position(row, [next(more) for _ in range(POSITION_COMMANDS)], now_ms) if _is_queued(row) else None
            )
            statuses, call_fields = next(more), next(more) if _newest_step_calls(row) else None
            trace = read_trace(_by_field(_newest_step_calls(row), call_fields)) if call_fields is not None else ()
            snapshot = read_snapshot(turn, row, budget, place, now_ms, trace, "")
            counts = Counter(statuses[1][1::2])
            failed_calls = sum(counts[status.value] for status in FAILED_CALLS)
            snapshots.append(LiveTurn(snapshot, failed_calls, counts[TraceStatus.UNKNOWN.value]))
        return snapshots

    def read_sessions(self, session_ids: Sequence[str]) -> list[LiveSession]:
        """Return the state of these sessions, in the given order."""
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
        return [("HMGET", key, *TURN_FIELDS), ("HMGET", key + ":budget", *BUDGET_FIELDS)]

    def _further_reads(self, turn: TurnKey, row: dict[str, str]) -> list[Command]:
        """Return the commands that read what a queued turn waits for, the statuses of all calls, and details of calls
        that may be open. The whole trace is not read, because it has arguments and results and may be large."""
        key = self.keys.turn(*turn) + ":trace"
        reads = position_commands(self.keys, turn, row.get("brain", "")) if _is_queued(row) else []
        reads.append(("HSCAN", key, 0, "MATCH", "*:status", "COUNT", MAX_TRACE_FIELDS))
        if calls := _newest_step_calls(row):
            reads.append(("HMGET", key, *(f"{call}:{name}" for call in calls for name in CALL_FIELDS)))
        return reads


def _is_queued(row: dict[str, str]) -> bool:
    return row["state"] == TurnState.QUEUED


def _newest_step_calls(row: dict[str, str]) -> list[str]:
    """Return the calls of the newest step of an open turn."""
    if row["state"] not in _OPEN_STATES:
        return []
    return [f"c{row['step']}-{at}" for at in range(min(MAX_SHOWN_CALLS, int(row.get("n_calls") or 0)))]


def _by_field(calls: Sequence[str], values: Sequence[str | None]) -> dict[str, str]:
    names = [f"{call}:{name}" for call in calls for name in CALL_FIELDS]
    return {name: value for name, value in zip(names, values, strict=True) if value is not None}


def _present(names: Sequence[str], values: Sequence[Any]) -> dict[str, str]:
    return {name: value for name, value in zip(names, values, strict=True) if value is not None}
