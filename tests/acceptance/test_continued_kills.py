"""Workers that continue with what their work opens are killed at random moments: nothing is lost or doubled."""

from __future__ import annotations

import json
import os
import random
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from brainq.app.devserver.local_fleet import LocalWorker
from brainq.client.handle import TurnHandle
from brainq.contracts.call import ToolTraceEntry
from brainq.contracts.status import Effect, Ending, TraceStatus
from tests.support.brains import diary
from tests.support.brains.obedient import Call, script
from tests.support.wait import wait_until
from tests.support.world import World

TENANTS = 4
TURNS_A_KILL = 6
SLEEPS_S = (0.0, 0.0, 0.02, 0.15)
NOTES_BEFORE_KILL = (1, 14)  # of functions that begin or end: the moment of a kill is drawn
LATEST_SETTLE_S = 5.0  # between the end of a function and the report of it, on a slow machine
NON_IDEMPOTENT = ("write", "sign")
Notes = dict[tuple[str, str], list[dict[str, Any]]]


@dataclass
class Storm:
    """What was done to a world: its turns, with the steps of each, and the kills, with the time of each death."""

    world: World
    dice: random.Random
    turns: list[tuple[TurnHandle, list[list[Call]]]] = field(default_factory=list)
    killed: dict[int, float] = field(default_factory=dict)
    hit_continued: int = 0  # kills of a process that held work it had continued with

    def submit(self) -> None:
        for _ in range(TURNS_A_KILL):
            number, steps = len(self.turns), self.plan()
            # Every other turn waits for the one before it in its session.
            session = f"tenant{number // 2 % TENANTS}:{number // 2}"
            self.turns.append((self.world.client.submit(session, script(*steps, final="$seen")), steps))

    def plan(self) -> list[list[Call]]:
        """Return the steps of a turn: two reads at once, a write, an idempotent write, and in some an approval."""
        many = [self.call("read", "a"), self.call("read", "b")]
        steps = [many, [self.call("write", "c")], [self.call("idem", "d")]]
        if self.dice.random() < 0.3:
            steps.append([("sign", {"name": "e"})])
        self.dice.shuffle(steps)
        return steps

    def call(self, tool: str, name: str) -> Call:
        return tool, {"name": name, "sleep_s": self.dice.choice(SLEEPS_S)}

    def kill_one(self) -> None:
        """Kill a worker that is ready, and start it again."""
        fleet = self.world.fleet
        ready = wait_until(lambda: [each for each in fleet.workers if each.is_ready], "a worker is ready")
        self.let_work_go_on(self.dice.randint(*NOTES_BEFORE_KILL))
        worker = self.dice.choice(ready)
        if not worker.is_running:
            return
        assert worker.process is not None
        fleet.kill(worker)
        self.killed[worker.process.pid] = diary.now()
        self.hit_continued += self.held_by(worker)
        worker.launch()

    def let_work_go_on(self, notes: int) -> None:
        """Wait until functions have noted so much more, or all turns have ended."""
        goal = len(diary.notes()) + notes
        wait_until(lambda: len(diary.notes()) >= goal or not unended(self.world), "functions run")

    def held_by(self, worker: LocalWorker) -> bool:
        """Return whether the process holds work that no message was rung for. Its claims show it until they lapse."""
        assert worker.process is not None
        pid = worker.process.pid
        for handle, _ in self.turns[-4 * TURNS_A_KILL :]:
            turn = turn_hash(self.world, handle)
            owners = [turn.get("owner", ""), turn.get("fin_owner", "") if turn.get("state") == "closing" else ""]
            owners += [each.owner for each in self.world.trace(handle) if each.status is TraceStatus.RUNNING]
            if any(is_continued(owner) and pid_of(owner) == pid for owner in owners):
                return True
        return False


def turn_hash(world: World, handle: TurnHandle) -> dict[str, str]:
    state = world.wiring.state
    client: Any = state.redis
    return client.hgetall(state.keys.turn(handle.session_id, handle.turn_id))


def unended(world: World) -> int:
    """Return how many turns the sweepers still look at."""
    state = world.wiring.state
    client: Any = state.redis
    return client.zcard(state.keys.index)


def is_continued(owner: str) -> bool:
    """Return whether the claim was made by a script for the thread that ran it (see Visits)."""
    return owner.startswith("v")


def pid_of(owner: str) -> int:
    return int(owner.split("-")[-2]) if owner else 0


def approve_all(world: World, stop: threading.Event) -> None:
    while not stop.wait(0.1):
        for approval in world.client.approvals():
            world.client.approve(approval.id, by="mia")


def tool_messages(text: str) -> list[dict[str, Any]]:
    return [row for row in json.loads(text) if row["role"] == "tool"]


def check_call(storm: Storm, entry: ToolTraceEntry, began: list[dict[str, Any]], ended: list[dict[str, Any]]) -> None:
    """Check how often the function of a settled call ran, and that only a death leaves its end unknown."""
    what = f"{entry}\n{began}\n{ended}"
    if entry.tool in NON_IDEMPOTENT:
        assert len(began) <= 1, what
    else:
        assert len(began) <= entry.attempt, what
    assert len({row["key"] for row in began if "key" in row}) <= 1, what
    if entry.status is TraceStatus.COMPLETED:
        assert began, what
        assert ended, what
        return
    assert entry.status is TraceStatus.UNKNOWN, what
    assert entry.tool in NON_IDEMPOTENT, what
    died_at = storm.killed.get(pid_of(entry.owner))
    assert died_at is not None, f"its worker was not killed: {what}"
    assert all(row["pid"] == pid_of(entry.owner) for row in began), what
    assert all(row["at"] > died_at - LATEST_SETTLE_S for row in ended), what


def check_turn(storm: Storm, handle: TurnHandle, steps: list[list[Call]], lines: dict[str, Notes]) -> Counter[str]:
    """Check one ended turn. Returns how many of its calls had which status, and how many were continued with."""
    world, store = storm.world, storm.world.wiring.store
    result, entries = handle.result(timeout_s=120), world.trace(handle)
    assert handle.result(timeout_s=5) == result
    world.done(handle, 120)
    world.all_events(handle)
    turn = turn_hash(world, handle)
    assert (turn["state"], turn["owner"], turn["fin_owner"]) == (str(result.ending), "", ""), turn
    counts = Counter(f"call {entry.status}" for entry in entries)
    counts[f"turn {result.ending}"] += 1
    counts["continued"] += sum(is_continued(entry.owner) for entry in entries)
    writes = [entry for entry in entries if entry.effect is not Effect.READ_ONLY]
    spends = store.spends.of_turn(handle.turn_id)
    rows = world.row_counts(handle)
    assert (rows["messages"], rows["decisions"]) == (2, 1), rows
    assert {row.state for row in store.steps.of_turn(handle.turn_id)} == {"done"}
    if result.ending is not Ending.COMPLETED:
        assert result.error, result
        return counts
    asked = [name for step in steps for name, _ in step]
    assert sorted(entry.tool for entry in entries) == sorted(asked)
    assert Counter(row["call"] for row in tool_messages(result.text)) == Counter(each.call_id for each in entries)
    assert [spend.kind for spend in spends].count("step") == len(steps) + 1, spends
    assert rows["calls"] >= len(writes), rows
    for entry in entries:
        key = handle.turn_id, entry.call_id
        check_call(storm, entry, lines["start"].get(key, []), lines["stop"].get(key, []))
    return counts


def read_diary() -> dict[str, Notes]:
    """Return the lines of functions that began and ended, by turn and call. `sign` notes no call at its end."""
    found: dict[str, Notes] = {"start": {}, "stop": {}}
    call_of: dict[tuple[str, str], str] = {}
    for row in diary.notes():
        if row["what"] not in found:
            continue
        if row["what"] == "start":
            call_of[row["turn"], row["name"]] = row["call"]
        call = row.get("call") or call_of[row["turn"], row["name"]]
        found[row["what"]].setdefault((row["turn"], call), []).append(row)
    return found


def nothing_left(world: World) -> list[str]:
    """Return what Redis still has of work: leases, lanes, waiting bells, turns that the sweeper looks at."""
    keys, client = world.wiring.state.keys, world.wiring.state.redis
    left = [f"index {member}" for member in client.zrange(keys.index, 0, -1)]
    for pattern in ("*{lanes}*", "*:queue", "*:tenants", "*:waiting", "*:outbox", "*:rung:*", "*unacked*"):
        left += [str(key) for key in client.scan_iter(match=pattern, count=1000)]
    for key in client.scan_iter(match="*brainq.*", count=1000, _type="list"):
        left.append(f"{key} has {client.llen(key)}")
    left += [f"live {member}" for member in client.zrange(keys.room_live, 0, -1)]
    return left


@pytest.mark.full
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("kills", [8, 50])
def test_nothing_is_lost_or_doubled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kills: int) -> None:
    seed = int(os.environ.get("BRAINQ_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 1_000_000)
    print(f"seed {seed} (BRAINQ_TEST_SEED)")
    app = {"BRAINQ_APP": "tests.support.brains.people:brain", "BRAINQ_MAX_ATTEMPTS": "20"}  # it kills faster than 5
    world = World(tmp_path, pools=("all",), workers={"all": 2}, threads={"serial": 2}, environment=app)
    monkeypatch.setenv(diary.DIRECTORY, str(tmp_path))
    stop = threading.Event()
    approver = threading.Thread(target=approve_all, args=(world, stop))
    storm = Storm(world, random.Random(seed))
    try:
        world.start()
        approver.start()
        for _ in range(kills):
            storm.submit()
            storm.kill_one()
        for handle, _ in storm.turns:
            handle.result(timeout_s=180)
        for handle, _ in storm.turns:
            world.done(handle, 120)
        lines = read_diary()
        counts: Counter[str] = Counter()
        for handle, steps in storm.turns:
            counts += check_turn(storm, handle, steps, lines)
        print(f"{len(storm.killed)} kills, {storm.hit_continued} of continued work, {len(storm.turns)} turns: {counts}")
        wait_until(lambda: not nothing_left(world), "nothing is left in Redis")
        assert counts["continued"] > len(storm.turns) // 4, "threads continued with what they opened"
    finally:
        stop.set()
        if approver.ident is not None:
            approver.join()
        world.stop()
