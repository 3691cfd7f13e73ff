"""Outside results and child turns with real processes: whoever is killed, a result comes in once, and is paid once."""

from __future__ import annotations

import pytest

from brainq.contracts.status import Ending, TraceStatus
from brainq.contracts.tool import ClientTool
from brainq.engine.people.children import child_turn_id
from brainq.errors import ResultRefused, TokenRefused
from tests.acceptance.people.conftest import Neighbours
from tests.support.brains.diary import notes, open_gate, order
from tests.support.brains.obedient import script
from tests.support.wait import wait_until
from tests.support.watch import at_place, parked, token_of, tool_texts
from tests.support.world import World


def test_the_completer_dies_between_redis_and_sql(stormy: World, neighbours: Neighbours, sid: str) -> None:
    turn = stormy.client.submit(sid, script([("send_off", {"name": "a"})], final="$seen"))
    parked(turn, "outside")
    token = token_of(turn, "a")
    neighbours(stormy).dies("store.calls.record_outcome", ["client"], "complete_call", token, "sent")
    assert tool_texts(turn.result(timeout_s=60).text) == ["sent"]
    with pytest.raises(TokenRefused):
        stormy.client.complete_call(token, "sent twice")
    stormy.done(turn)
    assert stormy.status(turn) == TraceStatus.COMPLETED
    assert [entry.status for entry in stormy.wiring.store.traces.of_turn(turn.turn_id)] == ["completed"]
    # What the completer could not write down any more, the end of the turn did.
    calls = stormy.wiring.store.calls.of_turn(turn.turn_id)
    assert [(call.state, call.outcome_kind) for call in calls] == [("done", "success")]


@pytest.mark.parametrize("tool", ["send_off", pytest.param("look_up", marks=pytest.mark.full)])
def test_the_worker_dies_between_pending_and_the_park(stormy: World, sid: str, tool: str) -> None:
    """A read is asked for again, under the same token; of a change nobody knows."""
    turn_id = f"t-{sid}"
    order(f"park.before.{turn_id}", f"p-{sid}")
    turn = stormy.client.submit(sid, script([(tool, {"name": "a"})], final="$seen"), turn_id=turn_id)
    pid, token = at_place(turn, "park.before")["pid"], token_of(turn, "a")
    stormy.kill_the("serial" if tool == "send_off" else "parallel", pid)
    open_gate(f"p-{sid}")
    stormy.launch_dead()
    if tool == "look_up":
        wait_until(lambda: len(notes("token", turn=turn_id)) == 2, "it ran again")
        parked(turn, "outside")
        assert {row["token"] for row in notes("token", turn=turn_id)} == {token}, "whoever has it can use it"
        assert stormy.client.complete_call(token, "found") == "settled"
        assert tool_texts(turn.result(timeout_s=60).text) == ["found"]
        return
    (text,) = tool_texts(turn.result(timeout_s=60).text)
    assert "may or may not have taken effect" in text
    assert stormy.status(turn) == TraceStatus.UNKNOWN
    # What was asked for may come all the same: it is evidence, and the next turn's model reads it.
    assert stormy.client.complete_call(token, "sent after all") == "late"
    with pytest.raises(TokenRefused):
        stormy.client.complete_call(token, "and again")
    after = stormy.client.submit(sid, "what happened?")
    after.result(timeout_s=60)
    others = notes("thinking", turn=after.turn_id)[0]["others"]
    assert [text for text in others if text.startswith("[Notice") and "sent after all" in text]


@pytest.mark.full
def test_a_result_that_came_before_the_worker_died_is_the_calls(
    stormy: World, neighbours: Neighbours, sid: str
) -> None:
    turn_id = f"t-{sid}"
    order(f"park.before.{turn_id}", f"p-{sid}")
    turn = stormy.client.submit(sid, script([("send_off", {"name": "a"})], final="$seen"), turn_id=turn_id)
    held = at_place(turn, "park.before")
    other = neighbours(stormy)
    assert other.client("complete_call", token_of(turn, "a"), "quick") == "early"
    stormy.kill_the("serial", held["pid"])
    open_gate(f"p-{sid}")
    assert tool_texts(turn.result(timeout_s=60).text) == ["quick"]
    assert len(notes("token", turn=turn_id)) == 1
    assert stormy.status(turn) == TraceStatus.COMPLETED


@pytest.mark.full
def test_the_worker_dies_right_after_the_park(stormy: World, sid: str) -> None:
    """Its lanes were never left: they lapse, so another session's call on the same resource runs meanwhile."""
    turn_id = f"t-{sid}"
    order(f"park.after.{turn_id}", f"p-{sid}")
    turn = stormy.client.submit(sid, script([("send_off", {"name": "a"})], final="$seen"), turn_id=turn_id)
    held = at_place(turn, "park.after")
    stormy.kill_the("serial", held["pid"])
    open_gate(f"p-{sid}")
    parked(turn, "outside")
    assert stormy.client.complete_call(token_of(turn, "a"), "sent") == "settled"
    assert tool_texts(turn.result(timeout_s=60).text) == ["sent"]
    after = stormy.client.submit(sid, script([("write", {"name": "w"})], final="after"))
    assert after.result(timeout_s=60).text == "after"


@pytest.mark.full
def test_the_childs_coordinator_dies(stormy: World, sid: str) -> None:
    inner = script(final="from the child", gate=f"m-{sid}")
    turn = stormy.client.submit(sid, script([("delegate", {"message": inner})], final="$seen"), turn_id=f"t-{sid}")
    child_id = child_turn_id(turn.turn_id, "c1-0")
    first = wait_until(lambda: notes("thinking", turn=child_id), "the child's model was asked")[0]
    parked(turn, "outside")
    stormy.kill_the("coordinator", first["pid"])
    open_gate(f"m-{sid}")
    result = turn.result(timeout_s=60)
    assert tool_texts(result.text) == ["from the child"]
    assert len(notes("thinking", turn=child_id)) == 2
    child = stormy.client.handle(child_id).result(timeout_s=60)
    (charged,) = [spend for spend in result.spends if spend.kind == "child"]
    assert charged.input_tokens == child.input_tokens


def test_a_client_gives_its_result_while_all_coordinators_are_dead(stormy: World, sid: str) -> None:
    """The one who asked for the calls is killed; the other call's result is given to the one that came after."""
    tools = [ClientTool(name="weather", parameters={"type": "object"})]
    turn = stormy.client.submit(
        sid, script([("weather", {"at": 1}), ("weather", {"at": 2})], final="$seen"), client_tools=tools
    )
    parked(turn, "client")
    stormy.kill_all("coordinator")
    assert turn.give_result("c1-0", "rain") == "settled"
    stormy.launch_dead()
    assert turn.give_result("c1-1", "snow") == "settled"
    assert tool_texts(turn.result(timeout_s=60).text) == ["rain", "snow"]
    with pytest.raises(ResultRefused):
        turn.give_result("c1-0", "sun")
    asked = [event.data["call"] for event in turn.events() if event.kind == "call.parked"]
    assert asked == ["c1-0", "c1-1"]


@pytest.mark.parametrize(
    "place",
    [
        "record.before",
        pytest.param("deliver.before", marks=pytest.mark.full),
        pytest.param("deliver.after", marks=pytest.mark.full),
    ],
)
def test_the_finalizer_dies_at_the_delivery_to_the_parent(stormy: World, sid: str, place: str) -> None:
    """`record.before`: between Redis, which settles the parent's call, and SQL."""
    turn_id = f"t-{sid}"
    child_id = child_turn_id(turn_id, "c1-0")
    stands_at = turn_id if place == "record.before" else child_id
    order(f"{place}.{stands_at}", f"d-{sid}")
    inner = script(final="from the child", gate=f"c-{sid}")
    turn = stormy.client.submit(sid, script([("delegate", {"message": inner})], final="$seen"), turn_id=turn_id)
    parked(turn, "outside")  # else the worker that parks it may be the one that settles it
    open_gate(f"c-{sid}")
    held = at_place(stands_at, place)
    child = stormy.client.handle(child_id).result(timeout_s=60)
    stormy.kill_the("finalizer", held["pid"])
    open_gate(f"d-{sid}")
    result = turn.result(timeout_s=60)
    assert tool_texts(result.text) == ["from the child"]
    stormy.done(stormy.client.handle(child_id))
    came = {row["pid"] for row in notes(place, turn=stands_at)}
    assert came > {held["pid"]}, "no other worker delivered it again"
    (charged,) = [spend for spend in result.spends if spend.kind == "child"]
    assert (charged.input_tokens, charged.output_tokens) == (child.input_tokens, child.output_tokens)
    assert [row.state for row in stormy.wiring.store.calls.of_turn(turn_id)] == ["done"]


def test_the_parent_is_cancelled_while_no_coordinator_is_there(stormy: World, neighbours: Neighbours, sid: str) -> None:
    inner = script([("sign", {"name": "a"})])
    turn = stormy.client.submit(sid, script([("delegate", {"message": inner})]), turn_id=f"t-{sid}")
    child_id = child_turn_id(turn.turn_id, "c1-0")
    wait_until(lambda: notes("thinking", turn=child_id), "the child runs")
    child = stormy.client.handle(child_id)
    parked(turn, "outside")
    parked(child)
    stormy.kill_all("coordinator")
    assert neighbours(stormy).handle(turn, "cancel", "enough") == "requested"
    stormy.launch_dead()
    assert turn.result(timeout_s=60).ending is Ending.CANCELLED
    assert child.result(timeout_s=60).ending is Ending.CANCELLED
    assert [approval.state for approval in child.approvals()] == ["void"]
    for each in (turn, child):
        stormy.all_events(each)


@pytest.mark.full
def test_the_coordinator_dies_before_it_stops_the_children(stormy: World, sid: str) -> None:
    turn_id = f"t-{sid}"
    child_id = child_turn_id(turn_id, "c1-0")
    order(f"orphans.before.{child_id}", f"o-{sid}")
    inner = script([("sign", {"name": "a"})])
    turn = stormy.client.submit(sid, script([("delegate", {"message": inner})]), turn_id=turn_id)
    parked(turn, "outside")
    turn.cancel()
    held = at_place(child_id, "orphans.before")
    assert turn.result(timeout_s=60).ending is Ending.CANCELLED
    stormy.kill_the("coordinator", held["pid"])
    open_gate(f"o-{sid}")
    assert stormy.client.handle(child_id).result(timeout_s=60).ending is Ending.CANCELLED


@pytest.mark.full
def test_the_worker_dies_between_the_child_and_the_park(stormy: World, sid: str) -> None:
    """Nobody knows what became of the call, and nobody waits for its child: it is stopped."""
    turn_id = f"t-{sid}"
    order(f"park.before.{turn_id}", f"p-{sid}")
    inner = script([("sign", {"name": "a"})])
    turn = stormy.client.submit(sid, script([("delegate", {"message": inner})], final="$seen"), turn_id=turn_id)
    held = at_place(turn, "park.before")
    stormy.kill_the("serial", held["pid"])
    open_gate(f"p-{sid}")
    assert turn.result(timeout_s=60).ending is Ending.COMPLETED
    assert stormy.status(turn) == TraceStatus.UNKNOWN
    child = stormy.client.handle(child_turn_id(turn_id, "c1-0"))
    assert child.result(timeout_s=60).ending is Ending.CANCELLED
