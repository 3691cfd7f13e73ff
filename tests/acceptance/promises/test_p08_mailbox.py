"""P8 under load: every input is read by exactly the step its receipt names, or becomes exactly one turn."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from brainq.client.handle import TurnHandle
from brainq.contracts.message import Message
from brainq.contracts.rows import InputRow
from brainq.contracts.status import Ending
from brainq.contracts.turn import LimitsOverride
from brainq.engine.people.bounced_inputs import bounced_turn_id
from tests.support.brains import diary
from tests.support.brains.diary import notes, open_gate, order
from tests.support.brains.echoing import steps_of
from tests.support.steering import Steer, other_process, send_all, send_at_the_end
from tests.support.wait import wait_until
from tests.support.world import ROOT, World

KILLED_AT_STEP = 3
THREADS = 4
SETTLED_WITHIN_S = 60.0


@pytest.fixture(scope="module")
def loaded_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(
        tmp_path_factory.mktemp("mailbox"),
        workers={"coordinator": 2},
        environment={"BRAINQ_APP": "tests.support.brains.echoing:brain"},
    )
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture
def loaded(loaded_world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv(diary.DIRECTORY, str(loaded_world.directory))
    yield loaded_world
    loaded_world.launch_dead()


@dataclass(frozen=True, slots=True)
class Plan:
    """What is submitted and sent. `last` are steers for turns that are just ending, by turn; `cancelled` are turns that
    are cancelled, each with its moment."""

    turns: list[tuple[str, str]]
    cancelled: dict[str, float]
    steers: list[Steer]
    last: dict[str, list[Steer]]
    elsewhere: list[Steer]

    @property
    def all(self) -> list[Steer]:
        """Each once, also those that two processes send."""
        some = [*self.steers, *self.elsewhere, *(steer for waiting in self.last.values() for steer in waiting)]
        return list({steer.message_id: steer for steer in some}.values())


def plan_of(name: str, n_sessions: int, n_steers: int, within_s: float) -> Plan:
    """A turn in each session, a second one behind every third; every seventh is cancelled. One steer of six waits for
    its turn's end, every fifth goes out from another process, every eighth to the turn of its session that is live."""
    dice = random.Random(name)
    turns = [(f"{name}-{n}", f"{name}{n}-{dice.randint(5, 12)}") for n in range(n_sessions)]
    turns += [(sid, f"{tid.split('-')[0]}b-{dice.randint(3, 8)}") for sid, tid in turns[::3]]
    plan = Plan(turns, {tid: dice.uniform(0.0, within_s) for _, tid in turns[5::7]}, [], {}, [])
    for number in range(n_steers):
        sid, tid = dice.choice(turns)
        through = "session" if number % 8 == 3 else "turn"
        steer = Steer(sid, tid, f"m{number}", f"{name} says {number}.", dice.uniform(0.0, within_s), through)
        if number % 6 == 0:
            plan.last.setdefault(tid, []).append(steer)
        elif number % 5 == 0:
            plan.elsewhere.append(steer)
        else:
            plan.steers.append(steer)
    plan.elsewhere.extend(plan.steers[::9])  # the same ones once more
    return plan


def drive(world: World, plan: Plan, kill: bool) -> None:
    """Submit, send everything, and, if wanted, kill a coordinator in the middle of a model call of it."""
    sent: list[object] = []
    failures: list[BaseException] = []
    client = world.client

    def safely(work: Any, steers: list[Steer]) -> None:
        try:
            work(client, steers, lambda: sent.append(None))
        except BaseException as failure:
            failures.append(failure)

    def cancel_all() -> None:
        began = time.monotonic()
        for turn_id, at_s in sorted(plan.cancelled.items(), key=lambda item: item[1]):
            threading.Event().wait(max(0.0, began + at_s - time.monotonic()))
            client.handle(turn_id).cancel()

    _, chosen = plan.turns[0]
    gate = f"{chosen}-gate"
    if kill:
        order(f"gate.{chosen}.{KILLED_AT_STEP}", gate)
    works = [(send_all, plan.steers[n::THREADS]) for n in range(THREADS)]
    works += [(send_at_the_end, steers) for steers in plan.last.values()]
    threads = [threading.Thread(target=safely, args=work) for work in works]
    threads.append(threading.Thread(target=cancel_all))
    with other_process(plan.elsewhere, world.environment, str(ROOT)) as go:
        for number, (sid, tid) in enumerate(plan.turns):
            # Every third may take no step more than it needs: what comes with its answer cannot be read by it.
            limits = LimitsOverride(max_steps=steps_of(tid)) if number % 3 == 1 else None
            client.submit(sid, f"turn {tid}.", turn_id=tid, limits=limits)
        go()
        for thread in threads:
            thread.start()
        if kill:
            thinking = wait_until(lambda: notes("asked", turn=chosen, step=KILLED_AT_STEP), "the model was asked", 30.0)
            wait_until(lambda: len(sent) >= len(plan.all) // 4, "a quarter was sent", 30.0)
            assert len(sent) < len(plan.all), "all was sent before the kill"
            world.kill_the("coordinator", thinking[0]["pid"])
            open_gate(gate)
        for thread in threads:
            thread.join(110.0)
            assert not thread.is_alive(), "a sender did not end"
    assert not failures, failures
    if kill:

        def asked() -> list[dict[str, Any]]:
            return notes("asked", turn=chosen, step=KILLED_AT_STEP)

        # The senders may be done before the lease of the killed one has lapsed.
        wait_until(lambda: len(asked()) > 1, "another coordinator asked again")
        assert [row["attempt"] for row in asked()] == [1, 2]
        assert len({row["pid"] for row in asked()}) == 2


class Seen:
    """What the model was asked, and what is kept, of all sessions of a plan."""

    def __init__(self, world: World, plan: Plan) -> None:
        self.world = world
        self.store = world.wiring.store
        self.asked: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in notes("asked"):
            self.asked[row["turn"]].append(row)
        self.cancelled = {
            tid
            for tid in plan.cancelled
            if (result := self.store.turns.result(tid)) is not None and result.ending is Ending.CANCELLED
        }
        self.turns: dict[str, list[str]] = {}
        self.kept: dict[str, tuple[Message, ...]] = {}
        for sid in {sid for sid, _ in plan.turns}:
            rows = self.store.turns.list(sid, None, 1000)
            self.turns[sid] = [row.turn_id for row in rows]
            self.kept |= {row.turn_id: self.store.transcripts.of_turn(row.turn_id) for row in rows}

    def check_read(self, sid: str, text: str, turn_id: str, step: int, mark: str | None) -> None:
        """The model of `turn_id` was first asked with the text at `step`, then always, and never twice at once; all
        histories of the session together have it once."""
        attempts = [row["attempt"] for row in self.asked[turn_id] if row["step"] == step]
        lost = {(step, attempt) for attempt in attempts if attempt < max(attempts)}
        for other in self.turns[sid]:
            for row in self.asked[other]:
                count = row["texts"].count(text)
                if other == turn_id and (row["step"], row["attempt"]) in lost:
                    assert count <= 1, (text, row)  # it may have come between this attempt and the one that counts
                elif other == turn_id:
                    assert count == (row["step"] >= step), (text, row)
                else:  # the history of the session goes on
                    assert count <= 1, (text, row)
        if attempts or turn_id not in self.cancelled:  # else it was cancelled after the step began
            rows = [row for rows in self.asked.values() for row in rows if text in row["texts"]]
            first = min(rows, key=lambda row: row["at"])
            assert (first["turn"], first["step"]) == (turn_id, step)
        found = [(tid, m) for tid in self.turns[sid] for m in self.kept[tid] if m.content == text]
        ((tid, message),) = found
        assert (tid, message.role) == (turn_id, "user")
        assert (message.extra or {}).get("input") == mark
        if mark is not None:
            assert message.step == step

    def check(self, steer: Steer, row: InputRow) -> str:
        """One steer; what became of it."""
        assert row.text == steer.text
        sid, sent_to = steer.session_id, row.turn_id
        receipt = TurnHandle(self.world.client, sid, sent_to).receipt(steer.message_id)
        assert (receipt.state, receipt.step, receipt.turn_id, receipt.bounced_turn_id) == (
            (row.state, row.step, row.turn_id, row.bounced_turn_id)
        )
        told = self.world.wiring.state.sessions.input_receipt(sid, sent_to, steer.message_id)
        then = bounced_turn_id(sid, steer.message_id)
        if row.state == "consumed":
            assert row.step is not None
            assert told == f"consumed {row.step}"
            assert then not in self.turns[sid]
            self.check_read(sid, steer.text, sent_to, row.step, steer.message_id)
            late = row.step > steps_of(sent_to)
            return "consumed by a step more" if late else "consumed"
        assert row.state == "bounced"
        assert told in ("bounced", None)
        assert row.bounced_turn_id == then
        result = self.store.turns.result(then)
        request = self.store.turns.request(then)
        assert result is not None
        assert request is not None
        assert (result.ending, request.user_message) == (Ending.COMPLETED, steer.text)
        self.check_read(sid, steer.text, then, 1, None)
        return "bounced by its turn" if told else "bounced by its sender"


@pytest.mark.parametrize(
    ("n_sessions", "n_steers", "within_s", "kill"),
    [
        pytest.param(10, 100, 1.5, False, id="sample", marks=pytest.mark.full),
        pytest.param(10, 100, 1.5, True, id="sample-killed"),
        pytest.param(50, 1000, 8.0, False, id="whole", marks=pytest.mark.full),
        pytest.param(50, 1000, 8.0, True, id="whole-killed", marks=pytest.mark.full),
    ],
)
def test_p8_under_load(
    loaded: World, request: pytest.FixtureRequest, n_sessions: int, n_steers: int, within_s: float, kill: bool
) -> None:
    name = f"{'k' if kill else 'c'}{n_sessions}"
    plan, began = plan_of(name, n_sessions, n_steers, within_s), time.monotonic()
    drive(loaded, plan, kill)
    sent_s = time.monotonic() - began
    inputs = loaded.wiring.store.inputs
    settled: dict[str, InputRow] = {}

    def all_settled() -> bool:
        for steer in plan.all:
            row = None if steer.message_id in settled else inputs.get(steer.session_id, steer.message_id)
            if row is not None and row.state != "accepted":
                settled[steer.message_id] = row
        return len(settled) == n_steers

    wait_until(all_settled, "all is consumed or bounced", SETTLED_WITHIN_S, 0.5)
    turns = [*(tid for _, tid in plan.turns), *(row.bounced_turn_id for row in settled.values())]
    ours = {turn_id for turn_id in turns if turn_id is not None}
    for turn_id in ours:
        loaded.done(loaded.client.handle(turn_id), SETTLED_WITHIN_S)

    seen = Seen(loaded, plan)
    assert {turn_id for some in seen.turns.values() for turn_id in some} == ours
    became = Counter(seen.check(steer, settled[steer.message_id]) for steer in plan.all)
    took_s = time.monotonic() - began
    print(f"\n{request.node.name}: {len(ours)} turns, {len(seen.cancelled)} cancelled; {dict(became)}")
    print(f"sent in {sent_s:.1f} s, {took_s:.1f} s in all")
    assert became.total() == n_steers
    ways = {"consumed", "consumed by a step more", "bounced by its turn", "bounced by its sender"}
    assert set(became) == ways or (n_steers < 1000 and len(became) >= 2), became
