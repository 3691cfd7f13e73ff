"""P9 with real processes: a finalizer worker is killed at each of its steps, before and after the effect."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from brainq.client.handle import TurnHandle
from tests.support.brains import diary
from tests.support.brains.diary import notes, open_gate, order
from tests.support.brains.whole import MESSAGE, PROMPT_ID
from tests.support.wait import wait_until
from tests.support.world import World

STEPS = ("citations", "usage", "log", "result", "memory", "learner", "judges", "decision", "end")
# A quick sample: after the effect for what writes to SQL, where a repeat would show.
QUICK = {("log", "after"), ("memory", "after"), ("judges", "after"), ("decision", "after"), ("learner", "before")}
PLACES = [
    pytest.param(step, place, marks=() if (step, place) in QUICK else pytest.mark.full)
    for step, place in itertools.product(STEPS, ("before", "after"))
]
_gates = itertools.count(1)


@pytest.fixture(scope="module")
def whole_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(
        tmp_path_factory.mktemp("whole"),
        workers={"coordinator": 1, "parallel": 1, "serial": 0, "finalizer": 2},
        environment={"BRAINQ_APP": "tests.support.brains.whole:brain"},
    )
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture
def whole(whole_world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv(diary.DIRECTORY, str(whole_world.directory))
    yield whole_world
    for path in whole_world.directory.glob("order-*"):
        path.unlink()
    whole_world.launch_dead()


def rows_of(world: World, handle: TurnHandle) -> dict[str, Any]:
    """What SQL has of the turn; times_seen would show an effect that ran twice."""
    store = world.wiring.store
    return {
        **{name: world.row_counts(handle)[name] for name in ("messages", "decisions")},
        "steps": {row.step: row.state for row in store.steps.of_turn(handle.turn_id)},
        "memories": sorted((row.kind, row.times_seen) for row in store.memories.list(handle.session_id)),
        "observations": [row.times_seen for row in store.observations.list(handle.session_id)],
        "judges": sorted(row.judge for row in store.judgements.of_turn(handle.turn_id)),
        "spends": [spend.kind for spend in store.spends.of_turn(handle.turn_id)],
        "traces": [entry.call_id for entry in store.traces.of_turn(handle.turn_id)],
        "said": [message.role for message in store.transcripts.of_turn(handle.turn_id)],
    }


def check(world: World, handle: TurnHandle) -> None:
    rows = rows_of(world, handle)
    assert rows["messages"] == 2
    assert rows["decisions"] == 1
    assert {name: rows["steps"].get(name) for name in ("log", "memory", "learner", "judges", "decision")} == (
        dict.fromkeys(("log", "memory", "learner", "judges", "decision"), "done")
    )
    assert set(rows["steps"].values()) == {"done"}
    assert rows["memories"] == [("fact", 1), ("preference", 1)]
    assert rows["observations"]
    assert set(rows["observations"]) == {1}
    assert rows["judges"] == ["own", "relevance"]
    assert rows["spends"] == ["step"]
    assert rows["traces"] == ["c0-0", "c0-1"]
    assert rows["said"] == ["user", "assistant"]
    world.all_events(handle)


def judged(world: World, handle: TurnHandle) -> bool:
    rows = world.wiring.store.judgements.of_turn(handle.turn_id)
    return bool(rows) and all(row.state == "done" for row in rows)


@pytest.mark.parametrize(("step", "place"), PLACES)
def test_a_finalizer_dies_at_a_step(whole: World, sid: str, step: str, place: str) -> None:
    gate = f"{step}-{place}-{next(_gates)}"
    order(f"{step}.{place}", gate)
    handle = whole.client.submit(sid, MESSAGE, prompt_id=PROMPT_ID)
    held = wait_until(lambda: notes(f"{step}.{place}", turn=handle.turn_id), f"the worker is {place} {step}")[0]
    whole.kill_the("finalizer", held["pid"])
    open_gate(gate)
    assert "closes at nine" in handle.result(timeout_s=60).text
    whole.done(handle)
    assert len(notes(f"{step}.{place}", turn=handle.turn_id)) == 2, "the step did not run again"
    wait_until(lambda: judged(whole, handle), "the turn is judged")
    check(whole, handle)
    for name in ("usage", "end"):
        called = notes(name, turn=handle.turn_id)
        again = (name, place) == (step, "after")
        assert len(called) == (2 if again else 1)
        assert {row["key"] for row in called} == {f"{handle.turn_id}:{name}"}


@pytest.mark.full
def test_a_finalizer_dies_while_it_judges(whole: World, sid: str) -> None:
    """The judgement's lease lapses, the sweeper rings, another worker judges."""
    order("own.judge", "judge-1")
    handle = whole.client.submit(sid, MESSAGE, prompt_id=PROMPT_ID)
    handle.result(timeout_s=60)
    held = wait_until(lambda: notes("own judge", turn=handle.turn_id), "the judge was called")[0]
    whole.kill_the("finalizer", held["pid"])
    open_gate("judge-1")
    whole.done(handle)
    store = whole.wiring.store
    wait_until(lambda: judged(whole, handle), "the turn is judged by another worker", 30.0)
    row = next(row for row in store.judgements.of_turn(handle.turn_id) if row.judge == "own")
    assert (row.state, row.tries) == ("done", 2)
    first, second = notes("own judge", turn=handle.turn_id)
    assert first["pid"] != second["pid"]
    check(whole, handle)
