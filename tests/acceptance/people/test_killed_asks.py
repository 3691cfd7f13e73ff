"""Holds and approvals with real processes: whoever is killed, a person's word counts once, and SQL agrees."""

from __future__ import annotations

import pytest

from brainq.contracts.status import TraceStatus
from tests.acceptance.people.conftest import Neighbours
from tests.support.brains.diary import notes, open_gate, order
from tests.support.brains.obedient import script
from tests.support.elsewhere import Elsewhere
from tests.support.wait import wait_until
from tests.support.watch import at_place, parked, started, tool_texts
from tests.support.world import World


@pytest.mark.parametrize("place", ["asked.after", pytest.param("commit.after", marks=pytest.mark.full)])
def test_the_coordinator_dies_when_an_approval_is_asked_for(stormy: World, sid: str, place: str) -> None:
    """`asked.after`: SQL has the approval and Redis does not have the step; `commit.after`: both do."""
    turn_id = f"t-{sid}"
    order(f"{place}.{turn_id}", f"c-{sid}")
    turn = stormy.client.submit(sid, script([("sign", {"name": "a"})], final="$seen"), turn_id=turn_id)
    held = at_place(turn, place)
    stormy.kill_the("coordinator", held["pid"])
    open_gate(f"c-{sid}")
    parked(turn)
    (pending,) = stormy.client.approvals(session=sid)
    stormy.client.approve(pending.id, by="mia", args_hash=pending.args_hash)
    assert tool_texts(turn.result(timeout_s=60).text) == ["sign a ok"]
    steps = [(row["step"], row["attempt"]) for row in notes("thinking", turn=turn_id)]
    assert steps == ([(1, 1), (1, 2), (2, 1)] if place == "asked.after" else [(1, 1), (2, 1)])
    assert [(a.state, a.decided_by) for a in turn.approvals()] == [("approved", "mia")]
    assert len(notes("start", turn=turn_id)) == 1
    stormy.all_events(turn)


@pytest.mark.full
def test_the_worker_dies_in_an_approved_read_which_runs_again_unasked(stormy: World, sid: str) -> None:
    turn = stormy.client.submit(sid, script([("peek", {"name": "a", "gate": f"p-{sid}"})], final="$seen"))
    parked(turn)
    stormy.client.approve(turn.approvals()[0].id)
    begun = started(turn)
    stormy.kill_the("parallel", begun["pid"])
    open_gate(f"p-{sid}")
    stormy.launch_dead()
    assert tool_texts(turn.result(timeout_s=60).text) == ["peek a ok"]
    assert [row["attempt"] for row in notes("start", turn=turn.turn_id)] == [1, 2]
    assert [a.state for a in turn.approvals()] == ["approved"]


def test_the_worker_dies_in_an_approved_write_which_is_unknown(stormy: World, sid: str) -> None:
    turn = stormy.client.submit(sid, script([("sign", {"name": "a", "gate": f"p-{sid}"})], final="$seen"))
    parked(turn)
    stormy.client.approve(turn.approvals()[0].id)
    begun = started(turn)
    stormy.kill_the("serial", begun["pid"])
    open_gate(f"p-{sid}")
    (text,) = tool_texts(turn.result(timeout_s=60).text)
    assert "may or may not have taken effect" in text
    assert stormy.status(turn) == TraceStatus.UNKNOWN
    assert len(notes("start", turn=turn.turn_id)) == 1
    assert [a.state for a in turn.approvals()] == ["approved"]


@pytest.mark.parametrize(
    "decision", ["approve", pytest.param("deny", marks=pytest.mark.full), pytest.param("edit", marks=pytest.mark.full)]
)
def test_the_decider_dies_between_redis_and_sql(stormy: World, neighbours: Neighbours, sid: str, decision: str) -> None:
    other = neighbours(stormy)
    # A second approval keeps the turn from ending, whose end would write the first down.
    calls = [("sign", {"name": "a"}), ("sign", {"name": "b"})]
    turn = stormy.client.submit(sid, script(calls, final="$seen"))
    parked(turn)
    first, second = turn.approvals()
    more = [{"name": "c"}] if decision == "edit" else []
    other.dies("store.approvals.decided", ["client"], decision, first.id, *more, by="mia")
    row = stormy.wiring.store.approvals.get(turn.turn_id, first.call_id)
    assert row is not None
    assert row.state == "pending"
    state = "denied" if decision == "deny" else "approved"
    listed = {a.id: a for a in stormy.client.approvals(session=sid, state="all")}
    assert (listed[first.id].state, listed[first.id].decided_by) == (state, "mia")
    assert [a.id for a in stormy.client.approvals(session=sid)] == [second.id]
    assert [a.id for a in stormy.client.approvals(session=sid, state=state)] == [first.id]
    parked(turn)  # the call that nobody entered into its lane is entered by the sweeper
    if decision != "deny":
        wait_until(lambda: stormy.status(turn) == TraceStatus.COMPLETED, "the approved call ran")
    stormy.client.deny(second.id, "enough")
    texts = tool_texts(turn.result(timeout_s=60).text)
    assert texts[1] == "Not run: a person refused it: enough."
    assert texts[0].endswith({"approve": "sign a ok", "edit": "sign c ok", "deny": "a person refused it."}[decision])
    stormy.done(turn)
    rows = stormy.wiring.store.approvals.of_turn(turn.turn_id)
    assert [(a.state, a.decided_by, a.edited) for a in rows] == [
        (state, "mia", decision == "edit"),
        ("denied", "", False),
    ]


@pytest.mark.full
def test_the_coordinators_die_while_a_turn_is_held(stormy: World, neighbours: Neighbours, sid: str) -> None:
    flag = stormy.client.session(sid).readiness("the files come")
    turn = stormy.client.submit(sid, script([("write", {"name": "a"})]))
    parked(turn)
    hold = turn.hold("and look")
    stormy.kill_all("coordinator", "serial")
    other: Elsewhere = neighbours(stormy)
    assert other.release_flag(sid, flag.id) is True
    assert [standing.id for standing in turn.holds()] == [hold.id]
    assert other.handle(turn, "release", hold.id) is True
    stormy.launch_dead()
    result = turn.result(timeout_s=60)
    assert len(notes("start", turn=turn.turn_id)) == 1
    assert result.text == "done"
    assert result.parked_ms > 0
