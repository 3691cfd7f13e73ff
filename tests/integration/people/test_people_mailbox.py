"""P8: every accepted input is read exactly once, or becomes a turn of its own, and its receipt says which."""

from __future__ import annotations

from typing import Any

import pytest

from brainq.adapters.sql.prune import prune
from brainq.contracts.model import TokenUsage
from brainq.contracts.people import TurnInput
from brainq.contracts.status import Ending, StopReason
from brainq.engine.models.scripted import calls, says
from brainq.engine.people.bounced_inputs import BouncedInputs, bounced_turn_id
from brainq.engine.people.inputs import InputDesk
from brainq.engine.turn.prompt.request_messages import INPUT_FRAME
from brainq.errors import InputNotFound, StaleTurn, SubmitConflict
from tests.support.people import (
    Pumps,
    Watched,
    brain_of,
    events,
    heal_inputs,
    history,
    lose_redis,
    statuses,
    turn_field,
)
from tests.support.pump import Pump

LOOK = calls(("look", {"name": "a"}))


def sql_state(pump: Pump, message_id: str) -> tuple[str, int | None]:
    row = pump.wiring.store.inputs.get("s1", message_id)
    assert row is not None
    return row.state, row.step


def test_p8_steers_are_read_at_the_next_step_after_the_results_of_the_calls(pumps: Pumps) -> None:
    model = Watched(LOOK, says("done"))
    pump = pumps(brain_of(model))
    handle = pump.submit("s1", "Go.")

    def both() -> None:
        assert handle.steer("one", client_message_id="m1").state == "accepted"
        assert handle.steer("two", client_message_id="m2").state == "accepted"

    model.meanwhile[1] = both
    assert pump.finish(handle).text == "done"
    assert model.shown(2) == [
        ("user", "Go."),
        ("assistant", ""),
        ("tool", "saw a"),
        ("user", "one" + INPUT_FRAME),
        ("user", "two" + INPUT_FRAME),
    ]
    said = [(m.role, m.content) for m in history(pump)]
    assert said[3:] == [("user", "one"), ("user", "two"), ("assistant", "done")]
    for message_id in ("m1", "m2"):
        receipt = handle.receipt(message_id)
        assert (receipt.state, receipt.step, receipt.turn_id) == ("consumed", 2, handle.turn_id)
        assert sql_state(pump, message_id) == ("consumed", 2)
    assert [e.data for e in events(handle, "input.consumed")] == [
        {"input": "m1", "step": 2},
        {"input": "m2", "step": 2},
    ]


def test_p8_a_receipt_says_consumed_before_the_turn_has_ended(pumps: Pumps) -> None:
    model = Watched(says("done"))
    pump = pumps(brain_of(model))
    handle = pump.submit("s1", "Go.")
    handle.steer("one", client_message_id="m1")
    told: list[str] = []
    model.meanwhile[1] = lambda: told.append(handle.receipt("m1").state)
    assert handle.receipt("m1").state == "accepted"
    pump.finish(handle)
    assert told == ["consumed"]
    with pytest.raises(InputNotFound):
        handle.receipt("m2")


def test_the_same_id_twice_is_one_message_and_never_another_one(pumps: Pumps) -> None:
    model = Watched(LOOK, says("done"))
    pump = pumps(brain_of(model))
    handle = pump.submit("s1", "Go.")

    def twice() -> None:
        first = handle.steer("one", client_message_id="m1")
        assert handle.steer("one", client_message_id="m1") == first
        with pytest.raises(SubmitConflict):
            handle.steer("other", client_message_id="m1")
        with pytest.raises(SubmitConflict):
            handle.steer("one", client_message_id="m1", readiness=True)

    model.meanwhile[1] = twice
    pump.finish(handle)
    assert [text for _, text in model.shown(2)].count("one" + INPUT_FRAME) == 1
    assert handle.steer("one", client_message_id="m1").state == "consumed"
    assert not pump.waiting()


def test_a_word_about_readiness_alone_is_no_message(pumps: Pumps) -> None:
    model = Watched(LOOK, calls(("write", {"name": "b"})), says("done"))
    ran: list[str] = []
    pump = pumps(brain_of(model, ran))
    handle = pump.submit("s1", "Go.")
    model.meanwhile[1] = lambda: handle.steer("", client_message_id="m1", readiness=False)
    pump.drain()
    assert statuses(pump, handle)["c2-0"] == "parked"
    assert handle.receipt("m1").state == "consumed"
    # Nothing reads a mailbox of a turn that is parked: the hold is released by its name.
    (hold,) = handle.holds()
    assert (hold.kind, hold.id) == ("readiness", "ready:m1")
    assert handle.release(hold.id)
    pump.finish(handle)
    assert ran == ["look a", "write b"]
    assert [role for role, _ in model.shown(3)] == ["user", "assistant", "tool", "assistant", "tool"]


def test_the_newest_readiness_wins(pumps: Pumps) -> None:
    model = Watched(LOOK, calls(("write", {"name": "b"})), says("done"))
    ran: list[str] = []
    pump = pumps(brain_of(model, ran))
    handle = pump.submit("s1", "Go.")

    def say() -> None:
        handle.steer("not yet", readiness=False)
        handle.steer("now", readiness=True)
        handle.steer("by the way")

    model.meanwhile[1] = say
    pump.finish(handle)
    assert ran == ["look a", "write b"]


def test_p8_input_that_comes_with_the_last_answer_leads_to_another_step(pumps: Pumps) -> None:
    model = Watched(says("first"), says("second"))
    pump = pumps(brain_of(model))
    handle = pump.submit("s1", "Go.")
    model.meanwhile[1] = lambda: handle.steer("and this?", client_message_id="m1")
    result = pump.finish(handle)
    assert (result.text, result.steps) == ("second", 2)
    assert model.shown(2) == [("user", "Go."), ("assistant", "first"), ("user", "and this?" + INPUT_FRAME)]
    assert handle.receipt("m1").step == 2


def test_a_word_about_readiness_alone_asks_for_no_other_step(pumps: Pumps) -> None:
    """There is nothing in it that a model could answer."""
    model = Watched(says("first"), says("second"))
    pump = pumps(brain_of(model))
    handle = pump.submit("s1", "Go.")
    model.meanwhile[1] = lambda: handle.steer("", client_message_id="m1", readiness=True)
    assert pump.finish(handle).text == "first"
    assert handle.receipt("m1").state == "refused"


def test_p8_input_for_a_compaction_becomes_a_turn(pumps: Pumps) -> None:
    """It asks the model nothing, so nothing in it could answer."""
    model = Watched(says("done"), later="second", auxiliary=lambda _: says("short"))
    pump = pumps(brain_of(model))
    pump.finish(pump.submit("s1", "Go."))
    handle = pump.client.session("s1").compact()
    handle.steer("and this?", client_message_id="m1")
    assert pump.finish(handle).ending is Ending.COMPLETED
    assert handle.receipt("m1").state == "bounced"
    assert pump.finish(pump.client.handle(bounced_turn_id("s1", "m1"))).text == "second"


def test_p8_input_that_no_step_is_left_for_becomes_a_turn_with_the_same_settings(pumps: Pumps) -> None:
    model = Watched(says("first"), later="second")
    pump = pumps(brain_of(model))
    handle = pump.submit(
        "s1",
        "Go.",
        system_prompt="Be brief.",
        limits={"max_steps": 1},
        metadata={"a": 1},
        output_schema={"type": "object"},
        request_key="k1",
    )
    model.meanwhile[1] = lambda: handle.steer("and this?", client_message_id="m1")
    assert pump.finish(handle).text == "first"
    receipt = handle.receipt("m1")
    assert (receipt.state, receipt.bounced_turn_id) == ("bounced", bounced_turn_id("s1", "m1"))
    assert receipt.bounced_turn_id is not None
    assert receipt.bounced_turn_id.startswith("in-")
    bounced = pump.client.handle(receipt.bounced_turn_id)
    assert pump.finish(bounced).text == "second"
    assert model.shown(1, bounced.turn_id)[-1] == ("user", "and this?")
    request = pump.wiring.store.turns.request(bounced.turn_id)
    assert request is not None
    assert (request.system_prompt, request.limits.max_steps, request.metadata) == ("Be brief.", 1, {"a": 1})
    assert (request.output_schema, request.key) == (None, bounced.turn_id)
    assert [e.data for e in events(handle, "input.bounced")] == [{"input": "m1"}]


def test_p8_several_bounced_inputs_run_in_the_order_they_came(pumps: Pumps) -> None:
    model = Watched(says("first"))
    pump = pumps(brain_of(model))
    handle = pump.submit("s1", "Go.", limits={"max_steps": 1})

    def three() -> None:
        for text in ("one", "two", "three"):
            handle.steer(text, client_message_id=text)

    model.meanwhile[1] = three
    for text in ("one", "two", "three"):
        pump.settle(handle)
        pump.finish(pump.client.handle(bounced_turn_id("s1", text)))
    assert [m.content for m in history(pump) if m.role == "user"] == ["Go.", "one", "two", "three"]


def test_a_steer_to_a_turn_that_is_over_becomes_a_turn_at_once(pumps: Pumps) -> None:
    model = Watched(says("first"), later="second")
    pump = pumps(brain_of(model))
    handle = pump.submit("s1", "Go.")
    pump.finish(handle)
    receipt = handle.steer("more", client_message_id="m1")
    assert receipt.state == "bounced"
    assert handle.steer("more", client_message_id="m1") == receipt
    assert pump.finish(pump.client.handle(receipt.bounced_turn_id or "")).text == "second"
    assert handle.steer("", client_message_id="m2", readiness=True).state == "refused"


def test_an_input_for_a_turn_that_is_not_live_any_more_fails_loudly(pumps: Pumps) -> None:
    model = Watched(says("first"))
    pump = pumps(brain_of(model))
    handle = pump.submit("s1", "Go.")
    pump.finish(handle)
    second = pump.submit("s1", "Again.")
    with pytest.raises(StaleTurn) as refused:
        handle.steer("more", client_message_id="m1", expected_turn_id=handle.turn_id)
    assert refused.value.live_turn_id == second.turn_id
    with pytest.raises(InputNotFound):
        handle.receipt("m1")
    assert second.steer("more", client_message_id="m2", expected_turn_id=second.turn_id).state == "accepted"
    pump.finish(second)
    assert [turn.turn_id for turn in pump.wiring.store.turns.list()] == [second.turn_id, handle.turn_id]


def test_a_turn_that_ends_between_the_look_and_the_mailbox_is_stale_too(
    pumps: Pumps, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Watched(says("first"))
    pump = pumps(brain_of(model))
    handle = pump.submit("s1", "Go.")
    looked: list[str] = []

    def looks_live(_: InputDesk, session_id: str, expected: str) -> None:
        assert pump.wiring.state.sessions.live(session_id) == expected
        pump.finish(handle)
        looked.append(expected)

    monkeypatch.setattr(InputDesk, "_expect", looks_live)
    with pytest.raises(StaleTurn):
        handle.steer("more", client_message_id="m1", expected_turn_id=handle.turn_id)
    assert looked, "the turn ended just then"
    assert handle.receipt("m1").state == "refused"
    assert not pump.waiting()
    assert len(pump.wiring.store.turns.list()) == 1


def test_p8_a_turn_that_redis_lost_begins_anew_and_reads_its_input_again(pumps: Pumps) -> None:
    model = Watched(LOOK, LOOK, says("done"))
    pump = pumps(brain_of(model))
    handle = pump.submit("s1", "Go.")
    model.meanwhile[1] = lambda: handle.steer("one", client_message_id="m1")
    model.meanwhile[2] = lambda: handle.steer("two", client_message_id="m2")
    pump.drain("brainq.turns")
    pump.drain("brainq.tools.read_only")
    pump.answer(pump.take("brainq.turns"))  # pyright: ignore[reportArgumentType]
    assert handle.receipt("m1").step == 2
    lose_redis(pump)
    assert pump.finish(handle).ending is Ending.COMPLETED
    assert model.shown(1) == [("user", "Go."), ("user", "one" + INPUT_FRAME), ("user", "two" + INPUT_FRAME)]
    assert sql_state(pump, "m1") == sql_state(pump, "m2") == ("consumed", 1)
    assert not pump.waiting()


def test_p8_a_steer_that_finds_its_turn_lost_brings_back_what_was_read_before(pumps: Pumps) -> None:
    model = Watched(LOOK, LOOK, says("done"))
    pump = pumps(brain_of(model))
    handle = pump.submit("s1", "Go.")
    model.meanwhile[1] = lambda: handle.steer("one", client_message_id="m1")
    pump.drain("brainq.turns")
    pump.drain("brainq.tools.read_only")
    pump.answer(pump.take("brainq.turns"))  # pyright: ignore[reportArgumentType]
    assert handle.receipt("m1").step == 2
    pump.wiring.state.redis.flushall()
    handle.steer("two", client_message_id="m2")
    assert pump.finish(handle).ending is Ending.COMPLETED
    assert model.shown(1) == [("user", "Go."), ("user", "one" + INPUT_FRAME), ("user", "two" + INPUT_FRAME)]


@pytest.mark.parametrize("verb", ["steer", "hold"])
def test_p3_what_is_done_to_a_lost_turn_does_not_begin_its_writes_again(pumps: Pumps, verb: str) -> None:
    ran: list[str] = []
    pump = pumps(brain_of(Watched(calls(("write", {"name": "b"})), LOOK, says("done")), ran))
    handle = pump.submit("s1", "Go.")
    for queue in ("brainq.turns", "brainq.tools.local_write"):
        pump.drain(queue)
    assert ran == ["write b"]
    pump.wiring.state.redis.flushall()
    if verb == "steer":
        handle.steer("more", client_message_id="m1")
    else:
        handle.hold("look", expires_in_s=60)
    result = pump.finish(handle)
    assert (result.ending, result.stop_reason) == (Ending.FAILED, StopReason.LOST)
    assert ran == ["write b"]


def test_p8_a_sender_that_dies_before_redis_knows_its_input(pumps: Pumps, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Watched(LOOK, says("done"))
    pump = pumps(brain_of(model))
    handle = pump.submit("s1", "Go.")
    item = TurnInput(client_message_id="m1", text="one")
    pump.wiring.store.inputs.accept("s1", handle.turn_id, item)

    def heal() -> None:
        heal_inputs(pump, monkeypatch)
        heal_inputs(pump, monkeypatch)

    model.meanwhile[1] = heal
    pump.finish(handle)
    assert model.shown(2)[-1] == ("user", "one" + INPUT_FRAME)
    assert sql_state(pump, "m1") == ("consumed", 2)


def test_p8_a_sender_that_dies_and_a_turn_that_ends_meanwhile(pumps: Pumps, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Watched(says("done"), later="second")
    pump = pumps(brain_of(model))
    handle = pump.submit("s1", "Go.")
    pump.wiring.store.inputs.accept("s1", handle.turn_id, TurnInput(client_message_id="m1", text="one"))
    pump.finish(handle)
    heal_inputs(pump, monkeypatch)
    assert handle.receipt("m1").state == "bounced"
    assert pump.finish(pump.client.handle(bounced_turn_id("s1", "m1"))).text == "second"


def test_p8_a_coordinator_that_dies_before_it_bounces(pumps: Pumps, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Watched(says("done"), later="second")
    pump = pumps(brain_of(model))
    handle = pump.submit("s1", "Go.", limits={"max_steps": 1})
    model.meanwhile[1] = lambda: handle.steer("one", client_message_id="m1")
    died: list[Any] = []
    with monkeypatch.context() as dying:
        dying.setattr(BouncedInputs, "bounce", lambda *given: died.append(given))  # pyright: ignore[reportUnknownLambdaType]
        pump.finish(handle)
    assert died, "it died just there"
    assert sql_state(pump, "m1") == ("accepted", None)
    heal_inputs(pump, monkeypatch)
    heal_inputs(pump, monkeypatch)
    assert pump.finish(pump.client.handle(bounced_turn_id("s1", "m1"))).text == "second"
    assert len(pump.wiring.store.turns.list()) == 2


def test_p8_input_of_a_waiting_turn_that_is_cancelled(pumps: Pumps, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Watched(says("done"))
    pump = pumps(brain_of(model))
    first, second = pump.submit("s1", "Go."), pump.submit("s1", "Then this.")
    assert second.steer("one", client_message_id="m1").state == "accepted"
    assert second.cancel() == "cancelled"
    heal_inputs(pump, monkeypatch)
    assert second.receipt("m1").state == "bounced"
    for handle in (first, second, pump.client.handle(bounced_turn_id("s1", "m1"))):
        pump.finish(handle)
    assert [m.content for m in history(pump) if m.role == "user"] == ["Go.", "one"]


def test_p8_input_of_a_live_turn_that_is_cancelled(pumps: Pumps) -> None:
    model = Watched(LOOK, says("done"), later="second")
    pump = pumps(brain_of(model))
    handle = pump.submit("s1", "Go.")

    def stop() -> None:
        handle.steer("one", client_message_id="m1")
        handle.cancel()

    model.meanwhile[1] = stop
    assert pump.finish(handle).ending is Ending.CANCELLED
    assert handle.receipt("m1").state == "bounced"
    assert pump.finish(pump.client.handle(bounced_turn_id("s1", "m1"))).text == "second"


def test_a_steer_in_the_last_moment_of_the_steps_is_not_lost_by_a_limit(pumps: Pumps) -> None:
    """The last step asked for calls: the turn ends for want of steps, with input unread."""
    model = Watched(LOOK, later="second")
    pump = pumps(brain_of(model))
    handle = pump.submit("s1", "Go.", limits={"max_steps": 1})
    model.meanwhile[1] = lambda: handle.steer("one", client_message_id="m1")
    assert pump.finish(handle).stop_reason is StopReason.MAX_STEPS
    assert handle.receipt("m1").state == "bounced"


def test_a_steer_with_the_last_answer_does_not_cost_a_turn_that_answer(pumps: Pumps) -> None:
    """The tokens allow for no other step: the answer stands, and the input becomes a turn."""
    model = Watched(says("done", usage=TokenUsage(input_tokens=900, output_tokens=100)))
    pump = pumps(brain_of(model))
    handle = pump.submit("s1", "Go.", limits={"max_total_tokens": 1_500})
    model.meanwhile[1] = lambda: handle.steer("one", client_message_id="m1")
    result = pump.finish(handle)
    assert (result.stop_reason, result.text) == (StopReason.ANSWERED, "done")
    assert handle.receipt("m1").state == "bounced"


def test_p8_a_compaction_between_accept_and_reading_loses_nothing(pumps: Pumps) -> None:
    model = Watched(says("done"), auxiliary=lambda _: says("They talked of boats."))
    pump = pumps(brain_of(model))
    for number in range(6):
        pump.finish(pump.submit("s1", f"Early {number}. " + "boats " * 400))
    handle = pump.submit("s1", "Go.", limits={"max_context_tokens": 2_000})
    handle.steer("one", client_message_id="m1")
    assert pump.finish(handle).ending is Ending.COMPLETED
    assert turn_field(pump, handle, "compacted") == "1", "it was compacted"
    assert model.shown(1, handle.turn_id)[-2:] == [("user", "Go."), ("user", "one" + INPUT_FRAME)]
    assert handle.receipt("m1").step == 1
    assert [m.content for m in history(pump)].count("one") == 1


def test_p8_more_input_than_one_step_reads_is_read_by_the_next(pumps: Pumps) -> None:
    model = Watched(LOOK, says("one"), says("two"))
    pump = pumps(brain_of(model))
    handle = pump.submit("s1", "Go.")

    def many() -> None:
        for number in range(130):
            handle.steer(f"input {number}", client_message_id=f"m{number}")

    model.meanwhile[1] = many
    assert pump.finish(handle).text == "two"
    assert [handle.receipt(f"m{number}").step for number in (0, 99, 100, 129)] == [2, 2, 3, 3]
    said = [m.content for m in history(pump) if (m.extra or {}).get("input")]
    assert said == [f"input {number}" for number in range(130)]


def test_p8_a_coordinator_that_dies_while_the_model_reads_the_input(
    pumps: Pumps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The input entered the history with the step: whoever takes over shows it again, and once."""
    model = Watched(LOOK, says("done"))
    pump = pumps(brain_of(model))
    handle = pump.submit("s1", "Go.")
    model.meanwhile[1] = lambda: handle.steer("one", client_message_id="m1")
    with monkeypatch.context() as dying:
        model.meanwhile[2] = lambda: dying.setattr(pump.wiring.state.turns, "end", _dies)
        with pytest.raises(KeyboardInterrupt):
            pump.drain()
    assert handle.receipt("m1").state == "consumed"
    assert pump.finish(handle).text == "done"
    assert len([r for r in model.requests if r.step == 2]) == 2
    assert [text for _, text in model.shown(2)].count("one" + INPUT_FRAME) == 1
    assert sql_state(pump, "m1") == ("consumed", 2)


def _dies(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_a_turn_that_owes_an_input_is_not_pruned(pumps: Pumps, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Watched(says("done"))
    pump = pumps(brain_of(model))
    handle = pump.submit("s1", "Go.")
    pump.wiring.store.inputs.accept("s1", handle.turn_id, TurnInput(client_message_id="m1", text="one"))
    pump.finish(handle)
    pump.finish(pump.submit("s2", "Newest."))
    prune(pump.wiring.store, -1.0)
    assert pump.wiring.store.turns.get(handle.turn_id) is not None
    heal_inputs(pump, monkeypatch)
    bounced = pump.client.handle(bounced_turn_id("s1", "m1"))
    pump.finish(bounced)
    prune(pump.wiring.store, -1.0)
    assert pump.wiring.store.turns.get(handle.turn_id) is None
    assert pump.wiring.store.inputs.get("s1", "m1") is None


def test_input_that_is_sent_again_after_it_was_read_names_the_step_that_read_it(pumps: Pumps) -> None:
    receipts: list[tuple[str, int | None]] = []
    pump = pumps(brain_of(model := Watched(LOOK, LOOK, LOOK, says("done"))))
    handle = pump.submit("s1", "Go.")

    def again() -> None:
        for receipt in (handle.receipt("m1"), handle.steer("one", client_message_id="m1")):
            receipts.append((receipt.state, receipt.step))

    model.meanwhile[1] = lambda: handle.steer("one", client_message_id="m1")
    model.meanwhile[3] = again
    pump.finish(handle)
    again()
    assert receipts == [("consumed", 2)] * 4
    assert sql_state(pump, "m1") == ("consumed", 2)
