"""The judge of a finished world. It checks the promises against SQL's rows, Redis' keys and the ledger of effects."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lab.simulate.clock import CLOCK

if TYPE_CHECKING:
    from lab.simulate.world import World

AFTER_DEADLINE_MS = 30_000
PAGE = 100
NO_RESULT = ("rejected", "refused")
NEVER_STARTED = ("denied", "cancelled")
READS = frozenset({"read", "slow"})
WITHOUT_LIFETIME = """
local left = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  if redis.call('PTTL', key) == -1 then left[#left + 1] = key end
end
return left
"""


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """The facts about a turn that Redis still has. `result` is whether its result is in Redis."""

    session_id: str
    turn_id: str
    state: str
    closing_at_ms: int
    deadline_ms: int
    steps: tuple[int, int]
    calls: tuple[int, int]
    events: list[Any]
    result: bool


def judge(world: World) -> None:
    """Report each broken promise to the world."""
    rows = _rows(world, "SELECT turn_id, session_id, state, ending, ended_at, result_json FROM turns ORDER BY turn_id")
    for turn_id, _, state, ending, ended_at, result in rows:
        world.endings[ending or state] += 1
        if state not in NO_RESULT and not (ending and ended_at and result) and state != "rejected":
            world.break_promise(f"P2 {turn_id} has no ending in SQL: {state}")
    known = {turn_id for turn_id, *_ in rows}
    for turn_id in world.people.accepted - known:
        world.break_promise(f"P2 {turn_id} was accepted, and SQL does not know it")
    for facts in _in_redis(world, [(row[1], row[0]) for row in rows]):
        _judge_turn(world, facts)
    _judge_calls(world)
    read = _judge_histories(world, sorted({row[1] for row in rows}))
    _judge_inputs(world, read)
    _judge_keys(world)


def _judge_turn(world: World, turn: TurnFacts) -> None:
    where = turn.turn_id
    if not turn.result:
        world.break_promise(f"P9 {where} ended without a result")
    numbers = [entry[0] for entry in turn.events]
    if numbers != [f"{number}-0" for number in range(1, len(numbers) + 1)]:
        world.break_promise(f"P10 the events of {where} have gaps: {numbers}")
    kinds = Counter(_fields(entry[1]).get("kind", "") for entry in turn.events)
    if kinds["result"] != 1 or kinds["turn.closing"] != 1:
        world.break_promise(f"P10 {where} has {kinds['turn.closing']} ends and {kinds['result']} results")
    if turn.steps[0] > turn.steps[1] or turn.calls[0] > turn.calls[1]:
        world.break_promise(f"P6 {where} used {turn.steps} steps and {turn.calls} calls")
    late_ms = turn.closing_at_ms - turn.deadline_ms - AFTER_DEADLINE_MS - world.away_ms(turn.closing_at_ms)
    if turn.deadline_ms and late_ms > 0:
        world.break_promise(f"P2 {where} ended {late_ms} ms too late")


def _judge_calls(world: World) -> None:
    """Compare the recorded status of each call with what its function did."""
    ledger, told = world.ledger, _rows(world, "SELECT turn_id, call_id, tool, status FROM traces")
    counted = Counter[str]()
    for turn_id, call_id, tool, status in told:
        happened = ledger.happened(turn_id, call_id)
        counted[turn_id] += happened
        if status == "completed" and not happened:
            world.break_promise(f"P3 {tool} of {turn_id} {call_id} is completed, and never ran")
        if status in NEVER_STARTED and happened and tool not in READS:
            world.break_promise(f"P3 {tool} of {turn_id} {call_id} is {status}, and ran")
    told_of = {(turn_id, call_id) for turn_id, call_id, *_ in told}
    for turn_id, call_id in ledger.effects:
        if (turn_id, call_id) not in told_of:
            world.break_promise(f"P3 {turn_id} {call_id} ran, and nobody tells of it")


def _judge_histories(world: World, sessions: Sequence[str]) -> list[str]:
    """Check that each call has one message, in the model's order, directly after its reply. Returns the inputs that
    were read."""
    read: list[str] = []
    keys = world.servers.scripts.keys
    found = world.servers.client.now([("LRANGE", keys.of_session(sid, "history"), 0, -1) for sid in sessions])
    for session_id, items in zip(sessions, found, strict=True):
        owed: list[str] = []
        for message in map(json.loads, items):
            if message["role"] == "tool":
                due = owed.pop(0) if owed else None
                if message["call_id"] != due:
                    world.break_promise(f"P5 {session_id}: message of {message['call_id']} where {due} is due")
                continue
            if owed:
                world.break_promise(f"P5 {session_id}: calls {owed} have no message")
            owed = [call["id"] for call in message.get("calls", [])]
            if "input" in (message.get("extra") or {}):
                read.append(message["extra"]["input"])
        if owed:
            world.break_promise(f"P5 {session_id}: calls {owed} have no message at the end")
    return read


def _judge_inputs(world: World, read: Sequence[str]) -> None:
    """Check that each input was read once, or became another turn, or was refused."""
    times = Counter(read)
    for name, turn_id, state, text in _rows(
        world, "SELECT client_message_id, turn_id, state, text FROM inputs ORDER BY client_message_id"
    ):
        if state == "accepted":
            world.break_promise(f"P8 input {name} of {turn_id} is neither read nor bounced")
        if state == "consumed" and text and times[name] != 1:
            world.break_promise(f"P8 input {name} of {turn_id} was read {times[name]} times")
        if state != "consumed" and times[name]:
            world.break_promise(f"P8 input {name} of {turn_id} is {state}, and was read")


def _judge_keys(world: World) -> None:
    client, keys = world.servers.client, world.servers.scripts.keys
    left = [key for key in client.now([("EVAL", WITHOUT_LIFETIME, 0)])[0] if key != CLOCK]
    if left:
        world.break_promise(f"P12 keys without a lifetime are left: {sorted(left)[:10]}")
    counts = client.now([("EXISTS", keys.index, keys.lane_leases)])
    if counts[0]:
        world.break_promise("P12 the index, or lanes, are not empty")


def _in_redis(world: World, turns: Sequence[tuple[str, str]]) -> Iterator[TurnFacts]:
    client, keys = world.servers.client, world.servers.scripts.keys
    for page in (turns[first : first + PAGE] for first in range(0, len(turns), PAGE)):
        commands: list[tuple[Any, ...]] = []
        for session_id, turn_id in page:
            key = keys.turn(session_id, turn_id)
            commands += [
                ("HMGET", key, "state", "closing_at"),
                ("HMGET", f"{key}:budget", "deadline", "steps_used", "steps_max", "tool_calls_used", "tool_calls_max"),
                ("XRANGE", f"{key}:events", "-", "+"),
                ("EXISTS", f"{key}:result"),
            ]
        found = client.now(commands)
        for place, (session_id, turn_id) in enumerate(page):
            (state, closing), budget, events, result = found[4 * place : 4 * place + 4]
            if state is None:  # it was refused before Redis knew it
                continue
            deadline, *used = (int(value or 0) for value in budget)
            yield TurnFacts(
                session_id,
                turn_id,
                state,
                int(closing or 0),
                deadline,
                (used[0], used[1]),
                (used[2], used[3]),
                events,
                bool(result),
            )


def _fields(flat: Any) -> dict[str, str]:
    return flat if isinstance(flat, dict) else dict(zip(flat[::2], flat[1::2], strict=True))


def _rows(world: World, query: str) -> list[tuple[Any, ...]]:
    with world.servers.store.engine.connect() as connection:
        return [tuple(row) for row in connection.exec_driver_sql(query)]
