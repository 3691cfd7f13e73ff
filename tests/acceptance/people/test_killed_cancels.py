"""Cancels outlive every process, and parked turns outlive Redis itself."""

from __future__ import annotations

import pytest
import redis

from brainq.adapters.redis.connection import SCRIPT_CONNECTIONS
from brainq.client.connection import wiring_of
from brainq.contracts.status import Ending, StopReason, TraceStatus
from tests.acceptance.people.conftest import Neighbours
from tests.support.brains.diary import notes, open_gate, order
from tests.support.brains.obedient import script
from tests.support.wait import wait_until
from tests.support.watch import asked, at_place, parked, started, token_of, tool_texts
from tests.support.world import World


def test_the_worker_of_a_cancelled_write_dies_before_it_can_end(
    stormy: World, neighbours: Neighbours, sid: str
) -> None:
    turn = stormy.client.submit(sid, script([("write", {"name": "w", "gate": f"w-{sid}"})]))
    begun = started(turn)
    assert neighbours(stormy).handle(turn, "cancel", "enough") == "requested"
    stormy.kill_the("serial", begun["pid"])
    open_gate(f"w-{sid}")
    result = turn.result(timeout_s=60)
    assert (result.ending, result.stop_reason) == (Ending.CANCELLED, StopReason.CANCELLED)
    assert stormy.status(turn) == TraceStatus.UNKNOWN
    assert len(notes("start", turn=turn.turn_id)) == 1
    assert not notes("stop", turn=turn.turn_id)
    # The lane lapses, and the model is shown that the turn was cut off.
    after = stormy.client.submit(sid, script([("write", {"name": "x"})], final="after"))
    assert after.result(timeout_s=60).text == "after"
    others = notes("thinking", turn=after.turn_id)[0]["others"]
    # Either the end of the turn says so, or the rescue of the call did before.
    assert any("took effect is not known" in text or "may or may not" in text for text in others)
    stormy.all_events(turn)


def test_the_coordinators_die_right_after_the_cancel(stormy: World, neighbours: Neighbours, sid: str) -> None:
    turn = stormy.client.submit(sid, script(final="never said", gate=f"m-{sid}"))
    pid = asked(turn)["pid"]
    other = neighbours(stormy)
    assert other.session(sid, "live") == turn.turn_id
    # The one that does not ask the model dies first: nobody is left to answer the doorbell.
    for worker in stormy.fleet.of_pool("coordinator"):
        assert worker.process is not None
        if worker.process.pid != pid:
            stormy.kill_the("coordinator", worker.process.pid)
    assert other.handle(turn, "cancel", "enough") == "requested"
    stormy.kill_the("coordinator", pid)
    open_gate(f"m-{sid}")
    stormy.launch_dead()
    assert turn.result(timeout_s=60).ending is Ending.CANCELLED
    assert len(notes("thinking", turn=turn.turn_id)) == 1
    stormy.all_events(turn)


@pytest.mark.full
def test_the_coordinator_that_ends_a_cancelled_turn_dies(stormy: World, sid: str) -> None:
    turn_id = f"t-{sid}"
    order(f"end.before.{turn_id}", f"e-{sid}")
    turn = stormy.client.submit(
        sid,
        script([("change", {"path": "a", "before": "1\n", "after": "2\n"})], [("sign", {"name": "a"})]),
        turn_id=turn_id,
    )
    parked(turn)
    assert turn.cancel() == "requested"
    held = at_place(turn, "end.before")
    stormy.kill_the("coordinator", held["pid"])
    open_gate(f"e-{sid}")
    result = turn.result(timeout_s=60)
    assert result.ending is Ending.CANCELLED
    assert result.diff is not None
    kinds = [event.kind.value for event in stormy.all_events(turn)]
    assert kinds.count("turn.diff") == kinds.count("turn.cancelling") == 1
    assert [approval.state for approval in turn.approvals()] == ["void"]


def reaches_redis(world: World) -> bool:
    """Each connection that was in use fails once: nothing is repeated blindly."""
    try:
        return all(
            world.wiring.state.redis.execute_command("EVAL", "return 1", 0) for _ in range(2 * SCRIPT_CONNECTIONS)
        )
    except redis.ConnectionError:
        return False


def test_redis_dies_under_parked_turns_and_they_are_still_parked(
    stormy: World, neighbours: Neighbours, sid: str
) -> None:
    signed = stormy.client.submit(f"{sid}-a", script([("sign", {"name": "a"})], final="$seen"))
    flag = stormy.client.session(f"{sid}-b").readiness("not yet")
    unready = stormy.client.submit(f"{sid}-b", script([("write", {"name": "b"})], final="$seen"))
    outside = stormy.client.submit(f"{sid}-c", script([("send_off", {"name": "c"})], final="$seen"))
    inner = script([("peek", {"name": "d"})], final="from the child")
    parent = stormy.client.submit(f"{sid}-d", script([("delegate", {"message": inner})], final="$seen"))
    waits = [(signed, "people"), (unready, "people"), (outside, "outside"), (parent, "outside")]
    for turn, awaits in waits:
        parked(turn, awaits)
    (asks,) = wait_until(
        lambda: [a for a in stormy.client.approvals() if a.turn_id.startswith("ch-")], "the child asks"
    )
    signed.steer("and pears", client_message_id="m1")
    redis = wiring_of(stormy.client).state.redis
    # Redis may hold a write back from its file for as long as it syncs what came before.
    wait_until(lambda: redis.info("persistence")["aof_buffer_length"] == 0, "it is in Redis' file")
    before = stormy.redis.pid
    stormy.redis.crash()
    assert stormy.redis.pid != before
    wait_until(lambda: reaches_redis(stormy), "this process's connections are made anew")
    for turn, awaits in waits:
        parked(turn, awaits)
    other = neighbours(stormy)
    other.client("approve", signed.approvals()[0].id)
    other.release_flag(f"{sid}-b", flag.id)
    other.client("complete_call", token_of(outside, "c"), "sent")
    other.client("approve", asks.id)
    texts = [tool_texts(turn.result(timeout_s=60).text) for turn, _ in waits]
    assert texts == [["sign a ok"], ["write b ok"], ["sent"], ["from the child"]]
    assert signed.receipt("m1").step == 2
    for turn, _ in waits:
        stormy.all_events(turn)
        assert len(notes("start", turn=turn.turn_id)) <= 1
