"""P8 with real processes: whoever is killed, an input is read once or becomes a turn, and its receipt says which."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from brainq.contracts.people import Receipt
from brainq.contracts.status import Ending, StopReason
from brainq.engine.people.bounced_inputs import bounced_turn_id
from tests.acceptance.people.conftest import Neighbours
from tests.support.brains.diary import notes, open_gate, order
from tests.support.brains.obedient import script
from tests.support.wait import wait_until
from tests.support.watch import asked, at_place, heard, parked, started
from tests.support.world import World


def settled(receipt: Callable[[], Receipt]) -> Receipt:
    """Wait until an input is consumed or bounced."""
    wait_until(lambda: receipt().state != "accepted", "the input is settled")
    return receipt()


def test_the_coordinator_dies_while_it_asks_with_the_input(stormy: World, sid: str) -> None:
    read = ("read", {"name": "r", "gate": f"r-{sid}"})
    turn = stormy.client.submit(sid, script([read], final="$seen", gate=f"m-{sid}", gate_step=2))
    started(turn)
    turn.steer("and pears", client_message_id="m1")
    open_gate(f"r-{sid}")
    first = asked(turn, step=2)
    assert first["inputs"] == ["m1"]
    assert turn.receipt("m1").step == 2
    stormy.kill_the("coordinator", first["pid"])
    open_gate(f"m-{sid}")
    shown = json.loads(turn.result(timeout_s=60).text)
    assert [m["role"] for m in shown] == ["user", "assistant", "tool", "user"]
    assert heard(turn) == [[], ["m1"], ["m1"]]
    assert asked(turn, step=2, attempt=2)["pid"] != first["pid"]
    assert (turn.receipt("m1").state, turn.receipt("m1").step) == ("consumed", 2)
    kinds = [event.kind.value for event in stormy.all_events(turn)]
    assert kinds.count("input.consumed") == 1


@pytest.mark.full
def test_the_coordinator_dies_with_an_answer_that_input_came_with(stormy: World, sid: str) -> None:
    order(f"end.before.u-{sid}", f"e-{sid}")
    turn = stormy.client.submit(sid, script(final="the answer"), turn_id=f"u-{sid}")
    held = at_place(turn, "end.before")
    turn.steer("wait", client_message_id="m1")
    stormy.kill_the("coordinator", held["pid"])
    open_gate(f"e-{sid}")
    assert turn.result(timeout_s=60).text == "the answer"
    # The lost answer's step is asked again, and reads what came with it.
    assert heard(turn) == [[], ["m1"]]
    assert [(r["step"], r["attempt"]) for r in notes("thinking", turn=turn.turn_id)] == [(1, 1), (1, 2)]
    assert settled(lambda: turn.receipt("m1")).step == 1


@pytest.mark.full
def test_the_coordinator_dies_between_the_end_and_the_bounce(stormy: World, sid: str) -> None:
    order(f"bounce.before.t-{sid}", f"b-{sid}")
    turn = stormy.client.submit(
        sid, script(final="the last", gate=f"m-{sid}"), turn_id=f"t-{sid}", limits={"max_steps": 1}
    )
    asked(turn)
    turn.steer("and pears", client_message_id="m1")
    open_gate(f"m-{sid}")
    held = at_place(turn, "bounce.before")
    stormy.kill_the("coordinator", held["pid"])
    open_gate(f"b-{sid}")
    assert turn.result(timeout_s=60).text == "the last"
    receipt = settled(lambda: turn.receipt("m1"))
    assert (receipt.state, receipt.bounced_turn_id) == ("bounced", bounced_turn_id(sid, "m1"))
    assert receipt.bounced_turn_id is not None
    assert stormy.client.handle(receipt.bounced_turn_id).result(timeout_s=60).text == "heard: and pears"
    assert heard(turn) == [[]]
    assert len(heard(receipt.bounced_turn_id)) == 1


@pytest.mark.full
@pytest.mark.parametrize("ending", ["reads it", "is cancelled"])
def test_the_sender_dies_between_sql_and_the_mailbox(
    stormy: World, neighbours: Neighbours, sid: str, ending: str
) -> None:
    turn = stormy.client.submit(sid, script([("sign", {"name": "a"})]))
    parked(turn)
    neighbours(stormy).dies(
        "state.sessions.put_input", ["handle", turn.turn_id], "steer", "and pears", client_message_id="m1"
    )
    told = stormy.wiring.state.sessions
    assert (turn.receipt("m1").state, told.input_receipt(sid, turn.turn_id, "m1")) == ("accepted", None)
    if ending == "is cancelled":
        turn.cancel()
        assert turn.result(timeout_s=60).ending is Ending.CANCELLED
        receipt = settled(lambda: turn.receipt("m1"))
        assert receipt.bounced_turn_id is not None
        bounced = stormy.client.handle(receipt.bounced_turn_id)
        assert bounced.result(timeout_s=60).text == "heard: and pears"
        return
    wait_until(lambda: told.input_receipt(sid, turn.turn_id, "m1") == "accepted", "the sweeper put it in")
    stormy.client.approve(turn.approvals()[0].id)
    assert turn.result(timeout_s=60).stop_reason is StopReason.ANSWERED
    assert heard(turn) == [[], ["m1"]]
    assert settled(lambda: turn.receipt("m1")).step == 2


@pytest.mark.full
def test_the_sender_dies_after_its_input_became_a_turn(stormy: World, neighbours: Neighbours, sid: str) -> None:
    turn = stormy.client.submit(sid, "first")
    turn.result(timeout_s=60)
    neighbours(stormy).dies(
        "store.inputs.bounced", ["handle", turn.turn_id], "steer", "and pears", client_message_id="m1"
    )
    bounced = stormy.client.handle(bounced_turn_id(sid, "m1"))
    assert bounced.result(timeout_s=60).text == "heard: and pears"
    assert settled(lambda: turn.receipt("m1")).bounced_turn_id == bounced.turn_id
    assert turn.steer("and pears", client_message_id="m1").bounced_turn_id == bounced.turn_id
    assert len(heard(bounced)) == 1


@pytest.mark.full
def test_the_sender_of_an_interrupt_dies_between_sql_and_redis(stormy: World, neighbours: Neighbours, sid: str) -> None:
    live = stormy.client.submit(sid, script([("sign", {"name": "a"})]))
    behind = stormy.client.submit(sid, "behind")
    parked(live)
    neighbours(stormy).dies(
        "state.turns.submit", ["client"], "submit", sid, "at once", turn_id=f"t-{sid}", on_busy="interrupt"
    )
    jumped = stormy.client.handle(f"t-{sid}")
    assert jumped.result(timeout_s=60).text == "heard: at once"
    assert live.result(timeout_s=60).ending is Ending.CANCELLED
    assert behind.result(timeout_s=60).text == "heard: behind"
    first, second = (notes("thinking", turn=each.turn_id)[0]["at"] for each in (jumped, behind))
    assert first < second
