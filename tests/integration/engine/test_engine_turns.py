"""Whole turns: the messages the model sees, and every ending."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from brainq import Brain, InvalidInput, ScriptedProvider, SubmitConflict
from brainq.adapters.celery.names import FINALIZE_STEP, TURN_ADVANCE
from brainq.contracts.brain import ThinkLevel
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.contracts.status import Ending, StopReason, TraceStatus
from brainq.engine.models.scripted import says
from brainq.engine.turn import text_stream
from brainq.engine.turn.reflection import PREFIXES
from brainq.workers.tasks.register import submit_foreign
from tests.support.brains.diary import notes, open_gate
from tests.support.brains.obedient import script
from tests.support.pump import Pump
from tests.support.wait import wait_until


def test_a_turn_with_reads_and_a_write_answers(pump: Pump) -> None:
    handle = pump.submit(
        "s1", script([("read", {"name": "a"}), ("read", {"name": "b"}), ("write", {"name": "c"})], final="all done")
    )
    result = pump.finish(handle)
    assert (result.text, result.ending, result.stop_reason) == ("all done", Ending.COMPLETED, StopReason.ANSWERED)
    assert (result.steps, result.tool_calls) == (2, 3)
    assert [citation.source for citation in result.local_citations] == ["a.txt", "b.txt", "c.txt"]
    row = pump.wiring.store.turns.get(handle.turn_id)
    assert row is not None
    assert row.state == "completed"
    assert pump.wiring.store.decisions.get(handle.turn_id) is not None
    assert [step.state for step in pump.wiring.store.steps.of_turn(handle.turn_id)] == ["done"] * 2


def test_an_advance_and_a_finalizers_visit_make_few_round_trips(pump: Pump, monkeypatch: pytest.MonkeyPatch) -> None:
    redis, me, trips = pump.wiring.state.redis, threading.get_ident(), []

    def counted(name: str) -> None:
        send = getattr(redis, name)

        def sent(*given: Any, **options: Any) -> Any:
            if threading.get_ident() == me:  # beats and the sweeper have threads of their own
                trips.append(given)
            return send(*given, **options)

        monkeypatch.setattr(redis, name, sent)

    asked = script([("read", {"name": "a"})], final="done")
    pump.finish(pump.submit("s0", asked))  # scripts are loaded
    counted("execute_command")
    counted("replies")
    handle = pump.submit("s1", asked)
    finalizer: Any = pump.wiring.finalizer
    # However slow the machine is.
    finalizer.visit_s = 600.0
    monkeypatch.setattr(text_stream, "DELTA_EVERY_S", 600.0)
    made: dict[str, list[int]] = {}
    while bell := pump.take():
        trips.clear()
        pump.answer(bell)
        made.setdefault(bell.task, []).append(len(trips))
    assert handle.result(timeout_s=5).text == "done"
    # Claim and look, begin and first step, commit; then claim and look, step, end.
    assert made[TURN_ADVANCE] == [3, 3]
    # Claim and look; then one for the end of each step, but one for `log`, `result` and `decision` together.
    assert made[FINALIZE_STEP] == [len(finalizer._brains.default.order.names) - 1]


def seen(pump: Pump, *steps: Any, **options: Any) -> list[dict[str, Any]]:
    handle = pump.submit("s1", script(*steps, final="$seen"), **options)
    return json.loads(pump.finish(handle).text)


MIXES: dict[str, list[Any]] = {
    "one read": [("read", {"name": "a"})],
    "reads around a write": [("read", {"name": "a"}), ("write", {"name": "w"}), ("read", {"name": "b"})],
    "failures": [
        ("read", {"name": "a", "fail": True}),
        ("write", {"name": "w", "fail": True}),
        ("read", {"name": "b"}),
    ],
    "unknown tool": [("no_such_tool", {}), ("read", {"name": "a"})],
    "denied by the hook": [("forbidden", {"name": "x"}), ("read", {"name": "a"}), ("write", {"name": "w"})],
    "arguments that are no JSON": [("read", "{{{{"), ("read", {"name": "a"})],
    "arguments that do not fit": [("read", {"nome": 3}), ("write", {"name": "w"})],
    "a repeat in one reply": [("write", {"name": "w"}), ("write", {"name": "w"}), ("read", {"name": "a"})],
    "only denials": [("no_such_tool", {}), ("forbidden", {"name": "x"})],
    "timeouts": [("hasty_read", {"name": "a", "sleep_s": 0.9}), ("read", {"name": "b"})],
    "writes in order": [("write", {"name": str(n)}) for n in range(5)],
}


@pytest.mark.parametrize("mix", MIXES.values(), ids=list(MIXES))
def test_p5_every_call_gets_one_tool_message_in_the_models_order(pump: Pump, mix: list[Any]) -> None:
    shown = seen(pump, mix)
    asked = next(message["asked"] for message in shown if message["asked"])
    answers = [message["call"] for message in shown if message["role"] == "tool"]
    assert asked == [f"c1-{index}" for index in range(len(mix))]
    assert answers == asked


@pytest.mark.parametrize("calls", [200, pytest.param(1_000, marks=pytest.mark.full)])
def test_p5_holds_for_a_reply_of_very_many_calls(pump: Pump, calls: int) -> None:
    asked: list[Any] = [("nothing", {"number": number}) for number in range(calls)]
    messages = json.loads(pump.finish(pump.submit("s1", script(asked, final="$seen"))).text)
    results = [message for message in messages if message["role"] == "tool"]
    assert [message["call"] for message in results] == [f"c1-{number}" for number in range(calls)]
    assert [f"this one held {calls}" in message["text"] for message in results] == [False] * 128 + [True] * (
        calls - 128
    )


def test_p5_holds_over_several_steps(pump: Pump) -> None:
    shown = seen(pump, [("read", {"name": "a"}), ("write", {"name": "b"})], [("destroy", {"name": "c"})])
    calls = [message["call"] for message in shown if message["role"] == "tool"]
    assert calls == ["c1-0", "c1-1", "c2-0"]
    assert [message["text"] for message in shown if message["role"] == "tool"] == [
        "read a ok",
        "write b ok",
        "destroy c ok",
    ]


def history(pump: Pump, session_id: str) -> list[dict[str, Any]]:
    kept: Any = pump.wiring.state.redis.lrange(pump.wiring.state.keys.of_session(session_id, "history"), 0, -1)
    return [json.loads(item) for item in kept]


def test_p5_holds_when_a_turn_is_cancelled_in_the_middle(pump: Pump) -> None:
    handle = pump.submit(
        "s1", script([("read", {"name": "a"}), ("write", {"name": "w", "gate": "never"}), ("read", {"name": "b"})])
    )
    pump.drain("brainq.turns", "brainq.tools.read_only")
    assert [entry.status for entry in trace(pump, handle)] == ["completed", "dispatched", "planned"]
    assert handle.cancel("enough") == "requested"
    result = pump.finish(handle)
    assert (result.ending, result.stop_reason, result.error) == (Ending.CANCELLED, StopReason.CANCELLED, "enough")
    said = history(pump, "s1")
    assert [message["role"] for message in said] == ["user", "assistant", "tool", "tool", "tool", "user"]
    assert [message["call_id"] for message in said if message["role"] == "tool"] == ["c1-0", "c1-1", "c1-2"]
    assert not notes("start", name="w"), "a call of a cancelled turn was started"


def trace(pump: Pump, handle: Any) -> Any:
    return pump.wiring.state.calls.trace(handle.session_id, handle.turn_id)


def test_p5_holds_when_the_deadline_passes_in_the_middle(pump: Pump) -> None:
    handle = pump.submit(
        "s1",
        script([("read", {"name": "a"}), ("write", {"name": "w", "sleep_s": 2.5}), ("read", {"name": "b"})]),
        limits={"timeout_s": 2.0},
    )
    result = pump.finish(handle)
    assert (result.ending, result.stop_reason) == (Ending.TIMED_OUT, StopReason.DEADLINE)
    assert notes("start", name="w")
    said = [message["call_id"] for message in history(pump, "s1") if message["role"] == "tool"]
    assert said == ["c1-0", "c1-1", "c1-2"]
    assert not notes("start", name="b")
    wait_until(lambda: notes("stop", name="w"), "the late write ended")


def test_the_next_turn_sees_the_one_before(pump: Pump) -> None:
    pump.finish(pump.submit("s1", script(final="first answer")))
    shown = seen(pump)
    assert "first answer" in [message["text"] for message in shown if message["role"] == "assistant"]


def test_max_steps_ends_with_its_own_text(pump: Pump) -> None:
    steps = [[("read", {"name": str(n)})] for n in range(5)]
    result = pump.finish(pump.submit("s1", script(*steps), limits={"max_steps": 2}))
    assert (result.ending, result.stop_reason, result.steps) == (Ending.COMPLETED, StopReason.MAX_STEPS, 2)
    assert result.text == (
        "I used all 2 steps allowed for this turn (max_steps) before I could finish. "
        "Your next message lets me go on from here; a higher limit lets one turn do more."
    )
    assert len(notes("thinking")) == 2


def test_a_model_error_fails_the_turn(pump: Pump) -> None:
    result = pump.finish(pump.submit("s1", script(fail="refused")))
    assert (result.ending, result.stop_reason) == (Ending.FAILED, StopReason.MODEL_ERROR)
    assert result.error == "the model broke"


def test_a_provider_that_raises_fails_the_turn(pumps: Callable[..., Pump]) -> None:
    def broken(request: object) -> Any:
        raise ZeroDivisionError

    pump = pumps(Brain("broken", ScriptedProvider(rules=broken)))
    result = pump.finish(pump.submit("s1", "hello"))
    assert (result.ending, result.error) == (Ending.FAILED, "provider 'scripted' raised ZeroDivisionError")


@pytest.mark.parametrize("reply", ["", "   \n"])
def test_an_empty_reply_is_replaced(pumps: Callable[..., Pump], reply: str) -> None:
    pump = pumps(Brain("empty", ScriptedProvider([says(reply)])))
    result = pump.finish(pump.submit("s1", "hello"))
    assert (result.ending, result.stop_reason) == (Ending.COMPLETED, StopReason.EMPTY_REPLY)
    assert result.text == "I could not produce a response."


def test_a_deadline_passes_while_the_model_thinks(pump: Pump) -> None:
    handle = pump.submit("s1", script(final="one two three four", words_s=0.2), limits={"timeout_s": 0.3})
    thinking = threading.Thread(target=pump.drain)
    thinking.start()
    thinking.join()
    result = pump.finish(handle)
    assert result.ending is Ending.TIMED_OUT
    assert result.stop_reason is StopReason.DEADLINE


def test_a_turn_that_was_never_advanced_times_out(pump: Pump) -> None:
    handle = pump.submit("s1", script(), limits={"timeout_s": 0.05})
    assert pump.take() is not None
    assert pump.finish(handle).ending is Ending.TIMED_OUT


def test_turns_of_a_session_run_in_order(pump: Pump) -> None:
    handles = [pump.submit("s1", script([("write", {"name": f"w{n}"})], final=str(n))) for n in range(4)]
    other = pump.submit("s2", script(final="other"))
    found = [handle.snapshot() for handle in handles]
    assert [snapshot.state for snapshot in found if snapshot] == ["active", "queued", "queued", "queued"]
    assert [pump.finish(handle).text for handle in [*handles, other]] == ["0", "1", "2", "3", "other"]
    assert [row["name"] for row in notes("start")] == ["w0", "w1", "w2", "w3"]


def test_a_queued_turn_is_cancelled_at_once(pump: Pump) -> None:
    first, second, third = (pump.submit("s1", script(final=str(n))) for n in range(3))
    assert second.cancel("changed my mind") == "cancelled"
    assert pump.finish(second).ending is Ending.CANCELLED
    assert (pump.finish(first).text, pump.finish(third).text) == ("0", "2")
    assert not notes("thinking", turn=second.turn_id)
    assert second.cancel() == "ended"


def test_cancel_takes_a_turn_from_a_thinking_coordinator(pumps: Callable[..., Pump]) -> None:
    first, second = pumps(owner="one"), pumps(owner="two")
    handle = first.submit("s1", script([("write", {"name": "w"})], gate="model"))
    thinking = threading.Thread(target=first.drain, args=("brainq.turns",))
    thinking.start()
    wait_until(lambda: notes("thinking"), "the model was asked")
    assert handle.cancel("stop") == "requested"
    result = second.finish(handle)
    open_gate("model")
    thinking.join()
    assert result.ending is Ending.CANCELLED
    assert first.bells[-1][1] == "lost"
    assert not notes("start")


def test_cancel_stops_a_running_tool(pumps: Callable[..., Pump]) -> None:
    first, second = pumps(owner="one"), pumps(owner="two")
    handle = first.submit("s1", script([("write", {"name": "w", "gate": "tool"})]))
    running = threading.Thread(target=first.drain)
    running.start()
    wait_until(lambda: notes("start"), "the tool started")
    handle.cancel()
    assert second.finish(handle).ending is Ending.CANCELLED
    running.join(60)
    assert not running.is_alive(), "the worker still waits for the cancelled call"
    open_gate("tool")
    wait_until(lambda: trace_notice(second), "the late write left a notice")
    assert "succeeded after all" in trace_notice(second)[0]["content"]


def trace_notice(pump: Pump) -> list[dict[str, Any]]:
    kept: Any = pump.wiring.state.redis.lrange(pump.wiring.state.keys.of_session("s1", "notices"), 0, -1)
    return [json.loads(item) for item in kept]


def test_a_request_key_is_one_turn_from_ten_threads(pump: Pump) -> None:
    found: list[str] = []
    barrier = threading.Barrier(10)

    def submit() -> None:
        barrier.wait()
        found.append(pump.submit("s1", script(), request_key="order-7").turn_id)

    threads = [threading.Thread(target=submit) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 10
    assert len(set(found)) == 1
    assert len(pump.wiring.store.turns.list()) == 1
    pump.finish(pump.client.handle(found[0]))
    assert len(notes("thinking")) == 1


def test_a_request_key_with_other_content_conflicts(pump: Pump) -> None:
    pump.submit("s1", "one", request_key="k")
    with pytest.raises(SubmitConflict, match="request_key 'k'"):
        pump.submit("s1", "two", request_key="k")
    pump.submit("s1", "one", turn_id="turn-a")
    with pytest.raises(SubmitConflict, match="turn-a"):
        pump.submit("s1", "two", turn_id="turn-a")
    assert len(pump.wiring.store.turns.list()) == 2


def test_sending_an_ended_turn_again_does_not_run_it_again(pump: Pump) -> None:
    handle = pump.submit("s1", script([("write", {"name": "w"})]), turn_id="turn-a")
    first = pump.finish(handle)
    for key in pump.wiring.state.redis.scan_iter("bq:{s1}*"):
        pump.wiring.state.redis.delete(key)  # as if keep_turn_s had passed
    again = pump.submit("s1", script([("write", {"name": "w"})]), turn_id="turn-a")
    assert not again.created
    pump.drain()
    assert len(notes("thinking")) == 2
    assert again.result(timeout_s=1) == first


def test_a_wrong_turn_id_is_refused_before_anything_is_stored(pump: Pump) -> None:
    with pytest.raises(InvalidInput, match="turn_id"):
        pump.submit("s1", "hello", turn_id="a b")
    assert pump.wiring.store.turns.list() == []


def test_denied_and_unknown_are_traced(pump: Pump) -> None:
    handle = pump.submit("s1", script([("no_such_tool", {}), ("forbidden", {"name": "x"})]))
    pump.finish(handle)
    assert [entry.status for entry in trace(pump, handle)] == [TraceStatus.DENIED, TraceStatus.DENIED]


def test_a_model_is_told_its_turns_number_metadata_and_thinking_level(pumps: Callable[..., Pump]) -> None:
    asked: list[ModelRequest] = []

    def rules(request: ModelRequest) -> ModelReply:
        asked.append(request)
        return says("done")

    pump = pumps(Brain("careful", ScriptedProvider(rules=rules), "Be good.", thinking="medium"))
    for metadata in ({"customer": 7}, None):
        pump.finish(pump.submit("s1", "hello", metadata=metadata))
    assert [(request.turn_number, request.metadata) for request in asked] == [(1, {"customer": 7}), (2, None)]
    rules_of = asked[0].messages[0].content.split("\n\n")
    assert rules_of[:2] == ["Be good.", PREFIXES[ThinkLevel.MEDIUM]]
    assert [message.role for message in asked[1].messages] == ["system", "user", "assistant", "user"]


@pytest.mark.parametrize("choice", [{"model": "gpt-5"}, {"model": "opnai:gpt-5"}, {"model": "m", "provider": "opnai"}])
def test_a_model_that_nobody_knows_is_refused_where_it_enters(pump: Pump, choice: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="did you mean openai"):
        pump.submit("s1", "hello", **choice)
    assert not pump.waiting()
    word = submit_foreign(
        pump.wiring, (), {"turn_id": "t-foreign", "session_id": "s1", "user_message": "hello", **choice}
    )
    assert str(word) == "rejected"
