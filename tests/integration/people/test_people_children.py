"""Child turns: a call waits for a turn in another session, pays for it, and takes it along when it is cancelled."""

from __future__ import annotations

from typing import Any

import pytest

from brainq.client.handle import TurnHandle
from brainq.contracts.brain import Children
from brainq.contracts.call import ChildTurn
from brainq.contracts.claim import CallRef, NoClaim
from brainq.contracts.model import ModelReply, ModelRequest, TokenUsage
from brainq.contracts.status import Effect, Ending
from brainq.engine.brain.brain import Brain
from brainq.engine.models.scripted import ScriptedFailure, ScriptedProvider, calls, fails, says
from brainq.engine.people.children import PARENT_OVER, ChildDesk, child_turn_id
from tests.support.people import Pumps, awaits, events, lose_redis, statuses, swept_until, take_call, turn_field
from tests.support.pump import Pump

USED = TokenUsage(input_tokens=100, output_tokens=10)


class Family:
    """A model whose message says how many children to ask, one after another: `3` asks three, which are asked `leaf`.

    `deep N` asks one child `deep N-1`; `fail` fails; `wait` writes, which a hold may keep it from.
    """

    def __init__(self, *, effect: Effect = Effect.READ_ONLY, **options: Any) -> None:
        self.requests: list[ModelRequest] = []
        self.brain = Brain("family", ScriptedProvider(rules=self._rules), **options)
        self.wishes: dict[str, Any] = {}

        @self.brain.tool(effect=effect)
        def ask(message: str, number: int = 0) -> ChildTurn:  # pyright: ignore[reportUnusedFunction]
            """Ask another."""
            return ChildTurn(message, **self.wishes)

        @self.brain.tool(effect=Effect.LOCAL_WRITE)
        def write() -> str:  # pyright: ignore[reportUnusedFunction]
            """Write."""
            return "wrote"

    def results(self, handle: TurnHandle) -> list[str]:
        """What the turn's model was shown of its calls when it was asked last."""
        asked = [request for request in self.requests if request.turn_id == handle.turn_id]
        return [m.content for m in asked[-1].messages if m.role == "tool" and m.turn == handle.turn_id]

    def _rules(self, request: ModelRequest) -> ModelReply | ScriptedFailure:
        self.requests.append(request)
        message = [m.content for m in request.messages if m.role == "user"][-1]
        match message.split(), request.step:
            case ["deep", number], 1 if int(number):
                return calls(("ask", {"message": f"deep {int(number) - 1}"}), usage=USED)
            case ["fail"], _:
                return fails("refused", retryable=False, message="the model broke")
            case ["wait"], 1:
                return calls(("write", {}), usage=USED)
            case [number], 1 if number.isdecimal():
                wanted = [("ask", {"message": "leaf", "number": place}) for place in range(int(number))]
                return calls(*wanted, usage=USED)
            case [word], 1 if word.startswith("ask:"):
                return calls(("ask", {"message": word.removeprefix("ask:")}), usage=USED)
            case _:
                return says(f"answer to {message}", usage=USED)


def child_of(pump: Pump, handle: TurnHandle, call_id: str = "c1-0") -> TurnHandle:
    return pump.client.handle(child_turn_id(handle.turn_id, call_id))


def test_a_turn_names_its_children_and_a_child_the_call_that_started_it(pumps: Pumps) -> None:
    pump = pumps(Family().brain)
    handle = pump.submit("acme:1", "2")
    assert handle.children() == ()
    pump.drain()
    children = handle.children()
    assert [(child.call_id, child.state) for child in children] == [("c1-0", "completed"), ("c1-1", "completed")]
    assert [child.turn_id for child in children] == [
        child_of(pump, handle, call_id).turn_id for call_id in ("c1-0", "c1-1")
    ]
    listed = {turn.turn_id: turn.parent for turn in pump.client.turns()}
    assert listed[handle.turn_id] is None
    parents = [listed[child.turn_id] for child in children]
    assert [(parent.turn_id, parent.call_id) for parent in parents if parent is not None] == [
        (handle.turn_id, "c1-0"),
        (handle.turn_id, "c1-1"),
    ]


def to_parked(pumps: Pumps, family: Family, message: str = "ask:leaf", **settings: Any) -> tuple[Pump, TurnHandle]:
    """A parent that waits for its child, whose doorbell is not yet answered."""
    pump = pumps(family.brain, **settings)
    handle = pump.submit("s1", message)
    pump.answer(_taken(pump))
    pump.answer(_taken(pump, "brainq.tools.read_only"))
    assert awaits(handle) == "parked outside"
    return pump, handle


def _taken(pump: Pump, queue: str = "brainq.turns") -> Any:
    bell = pump.take(queue)
    assert bell is not None
    return bell


@pytest.mark.parametrize("effect", [Effect.READ_ONLY, Effect.LOCAL_WRITE])
def test_the_childs_answer_is_the_calls_result_and_is_paid_for(pumps: Pumps, effect: Effect) -> None:
    family = Family(effect=effect)
    pump = pumps(family.brain)
    handle = pump.submit("s1", "ask:leaf")
    result = pump.finish(handle)
    assert (result.ending, result.text) == (Ending.COMPLETED, "answer to ask:leaf")
    assert family.results(handle) == ["answer to leaf"]
    child = child_of(pump, handle)
    assert child.session_id == child.turn_id, "a session of its own"
    tenants = pump.submit("acme:eu:7", "ask:leaf")
    pump.finish(tenants)
    theirs = child_of(pump, tenants)
    assert theirs.session_id == f"acme:eu:{theirs.turn_id}", "whoever sees the parent sees it"
    assert pump.finish(child).input_tokens == 100
    assert (result.input_tokens, result.output_tokens) == (300, 30)
    assert [(s.kind, s.step, s.input_tokens) for s in result.spends] == [
        ("step", 1, 100),
        ("child", 1, 100),
        ("step", 2, 100),
    ]
    outcomes = [row.outcome_kind for row in pump.wiring.store.calls.of_turn(handle.turn_id)]
    assert outcomes == ([] if effect.is_read else ["success"])
    assert [e.data["why"] for e in events(handle, "call.parked")] == ["child"]


def test_what_a_grandchild_used_is_paid_all_the_way_up(pumps: Pumps) -> None:
    family = Family()
    pump = pumps(family.brain)
    result = pump.finish(pump.submit("s1", "deep 2"))
    # Three turns; those that ask take two steps each, the last takes one.
    assert result.input_tokens == 500
    assert [s.input_tokens for s in result.spends if s.kind == "child"] == [300]


def test_a_child_in_a_session_of_the_tools_choice_with_options(pumps: Pumps) -> None:
    family = Family()
    family.wishes = {"session_id": "other", "options": {"system_prompt": "Be a child.", "metadata": {"a": 1}}}
    pump = pumps(family.brain)
    handle = pump.submit("s1", "ask:leaf")
    pump.finish(handle)
    assert child_of(pump, handle).session_id == "other"
    request = pump.wiring.store.turns.request(child_turn_id(handle.turn_id, "c1-0"))
    assert request is not None
    assert request.parent is not None
    assert (request.system_prompt, request.parent.turn_id, request.parent.depth) == ("Be a child.", handle.turn_id, 1)


def test_it_is_refused_too_deep(pumps: Pumps) -> None:
    family = Family(children=Children(max_depth=2))
    pump = pumps(family.brain)
    pump.finish(pump.submit("s1", "deep 3"))
    assert len(pump.wiring.store.turns.list()) == 3
    said = [m.content for request in family.requests for m in request.messages if m.role == "tool"]
    assert any("child turns may be 2 deep" in text for text in said)


def test_it_is_refused_past_the_number_a_turn_may_start(pumps: Pumps) -> None:
    family = Family(children=Children(max_turns=2))
    pump = pumps(family.brain)
    handle = pump.submit("s1", "3")
    pump.finish(handle)
    results = family.results(handle)
    assert sum(text == "answer to leaf" for text in results) == 2
    assert sum("all the 2 child turns it may" in text for text in results) == 1
    assert len(pump.wiring.store.turns.list()) == 3


def test_it_is_refused_in_the_parents_own_session_and_with_wrong_options(pumps: Pumps) -> None:
    family = Family()
    pump = pumps(family.brain)
    for wishes, why in (
        ({"session_id": "s1"}, "would wait for its parent for ever"),
        ({"session_id": "no spaces"}, "session_id"),
        ({"options": {"limits": {"max_steps": 0}}}, "limits.max_steps"),
        ({"options": {"unknown": 1}}, "unknown"),
    ):
        family.wishes = wishes
        handle = pump.submit("s1", "ask:leaf")
        pump.finish(handle)
        (result,) = family.results(handle)
        assert result.startswith("The tool failed: the child turn was refused:")
        assert why in result


def test_it_is_refused_where_a_turn_waits_for_its_parent(pumps: Pumps) -> None:
    """It would stand in line behind a turn that waits for it."""
    family = Family()
    pump = pumps(family.brain)
    family.wishes = {"session_id": "s2"}
    handle = pump.submit("s1", "deep 2")
    pump.answer(_taken(pump))
    pump.answer(_taken(pump, "brainq.tools.read_only"))
    family.wishes = {"session_id": "s1"}
    child = child_of(pump, handle)
    pump.finish(child)
    (result,) = family.results(child)
    assert "session 's1' has a turn that waits for this one" in result
    assert pump.finish(handle).ending is Ending.COMPLETED


@pytest.mark.parametrize("message", ["leaf", "another"], ids=["the same content", "other content"])
def test_it_is_refused_under_a_key_that_stands_for_another_turn(pumps: Pumps, message: str) -> None:
    family = Family()
    pump = pumps(family.brain)
    pump.finish(pump.submit("other", message, request_key="k1"))
    family.wishes = {"session_id": "other", "options": {"request_key": "k1"}}
    handle = pump.submit("s1", "ask:leaf")
    assert pump.finish(handle).ending is Ending.COMPLETED
    (result,) = family.results(handle)
    assert "request_key" in result


def test_a_child_that_fails_is_a_failed_call(pumps: Pumps) -> None:
    family = Family()
    pump = pumps(family.brain)
    handle = pump.submit("s1", "ask:fail")
    result = pump.finish(handle)
    assert result.ending is Ending.COMPLETED
    (told,) = family.results(handle)
    assert told.startswith("The tool failed: the child turn ended as failed (the model broke)")
    assert statuses(pump, handle) == {"c1-0": "failed"}


def test_a_child_that_is_cancelled_by_itself_is_a_failed_call(pumps: Pumps) -> None:
    family = Family()
    pump, handle = to_parked(pumps, family)
    child_of(pump, handle).cancel("no time")
    pump.finish(handle)
    (told,) = family.results(handle)
    assert "the child turn ended as cancelled (no time)" in told


def test_cancelling_the_parent_cancels_the_child(pumps: Pumps) -> None:
    pump, handle = to_parked(pumps, Family())
    _taken(pump)  # the child's: nobody answers it
    handle.cancel()
    assert pump.finish(handle).ending is Ending.CANCELLED
    child = pump.finish(child_of(pump, handle))
    assert (child.ending, child.error) == (Ending.CANCELLED, PARENT_OVER)


def test_a_coordinator_that_dies_before_it_cancels_the_children(pumps: Pumps, monkeypatch: pytest.MonkeyPatch) -> None:
    pump, handle = to_parked(pumps, Family(), "ask:wait")
    child = child_of(pump, handle)
    child.hold()
    pump.answer(_taken(pump))
    assert awaits(child) == "parked people"
    died: list[Any] = []
    with monkeypatch.context() as dying:
        dying.setattr(ChildDesk, "cancel_children", lambda *given: died.append(given))  # pyright: ignore[reportUnknownLambdaType]
        handle.cancel()
        pump.answer(_taken(pump))
    assert died, "it died just there"
    assert not turn_field(pump, child, "cancel")
    swept_until(pump, lambda: turn_field(pump, child, "cancel"), "the sweeper cancelled the child")
    assert pump.finish(child).error == PARENT_OVER
    assert pump.finish(handle).ending is Ending.CANCELLED


def test_a_grandchild_goes_with_its_grandparent(pumps: Pumps) -> None:
    pump, handle = to_parked(pumps, Family(), "deep 2")
    child = child_of(pump, handle)
    pump.answer(_taken(pump))
    pump.answer(_taken(pump, "brainq.tools.read_only"))
    grandchild = child_of(pump, child)
    _taken(pump)  # the grandchild's: nobody answers it
    handle.cancel()
    for turn in (handle, child, grandchild):
        assert pump.finish(turn).ending is Ending.CANCELLED


def test_a_child_that_waits_behind_another_turn_is_cancelled_with_its_parent(pumps: Pumps) -> None:
    family = Family()
    family.wishes = {"session_id": "other"}
    pump = pumps(family.brain)
    before = pump.submit("other", "wait")
    before.hold()
    handle = pump.submit("s1", "ask:leaf")
    pump.drain()
    child = child_of(pump, handle)
    assert awaits(child) == "queued session"
    handle.cancel()
    assert pump.finish(handle).ending is Ending.CANCELLED
    assert pump.finish(child).ending is Ending.CANCELLED


def test_a_child_nobody_waited_for_any_longer(pumps: Pumps) -> None:
    """The call timed out: the parent goes on, and the child is stopped."""
    family = Family()
    family.wishes = {"timeout_s": 0.1, "session_id": "other"}
    pump = pumps(family.brain)
    before = pump.submit("other", "wait")
    before.hold()
    handle = pump.submit("s1", "ask:leaf")
    pump.drain()
    assert pump.finish(handle).ending is Ending.COMPLETED
    assert family.results(handle)[0].startswith("No result came from outside within ")
    child = child_of(pump, handle)
    assert pump.finish(child).error == PARENT_OVER


def test_a_child_that_is_done_before_its_call_has_parked(pumps: Pumps, monkeypatch: pytest.MonkeyPatch) -> None:
    family = Family()
    pump = pumps(family.brain)
    start = ChildDesk.start

    def and_run(self: ChildDesk, claim: Any, child: ChildTurn) -> tuple[str, str]:
        started = start(self, claim, child)
        pump.finish(pump.client.handle(started[1]))
        return started

    monkeypatch.setattr(ChildDesk, "start", and_run)
    handle = pump.submit("s1", "ask:leaf")
    result = pump.finish(handle)
    assert family.results(handle) == ["answer to leaf"]
    assert result.parked_ms == 0
    assert [s.kind for s in result.spends] == ["step", "child", "step"]


def test_a_worker_that_dies_between_the_childs_start_and_the_parking(pumps: Pumps) -> None:
    """The next attempt finds the same child, also when it has ended meanwhile: it is neither run nor paid twice."""
    family = Family()
    pump = pumps(family.brain)
    handle = pump.submit("s1", "ask:leaf")
    pump.drain("brainq.turns")
    take_call(pump)
    ref = CallRef("s1", handle.turn_id, "c1-0")
    claim = pump.wiring.state.calls.claim(ref, 1, "dead")
    assert not isinstance(claim, NoClaim)
    word, child_id = pump.wiring.people.children.start(claim, ChildTurn("leaf"))  # pyright: ignore[reportArgumentType]
    assert (word, child_id) == ("STARTED", child_turn_id(handle.turn_id, "c1-0"))
    pump.finish(pump.client.handle(child_id))
    result = pump.finish(handle)
    assert family.results(handle) == ["answer to leaf"]
    assert [s.kind for s in result.spends] == ["step", "child", "step"]
    assert len(pump.wiring.store.turns.list()) == 2


def test_a_child_gets_no_more_than_its_parent_has_left(pumps: Pumps) -> None:
    family = Family()
    family.wishes = {"options": {"limits": {"max_total_tokens": 1_000_000, "max_steps": 2}}}
    pump = pumps(family.brain)
    handle = pump.submit("s1", "ask:leaf", limits={"max_total_tokens": 50_000, "max_cost_usd": 2.0})
    pump.finish(handle)
    request = pump.wiring.store.turns.request(child_turn_id(handle.turn_id, "c1-0"))
    assert request is not None
    assert (request.limits.max_total_tokens, request.limits.max_steps) == (50_000 - 110, 2)
    assert request.limits.max_cost_usd == pytest.approx(2.0)  # pyright: ignore[reportUnknownMemberType]


def test_a_child_that_redis_lost_waits_for_its_parent_to_come_to_it_again(pumps: Pumps) -> None:
    """Its parent begins anew: that it has not made the call yet does not say that it is over."""
    family = Family()
    pump, handle = to_parked(pumps, family, "ask:wait")
    child = child_of(pump, handle)
    hold = child.hold()
    lose_redis(pump)
    pump.sweep()
    pump.sweep()
    assert not turn_field(pump, child, "cancel")
    hold.release()
    assert pump.finish(handle).ending is Ending.COMPLETED
    assert family.results(handle) == ["answer to wait"]


def test_a_child_that_has_ended_is_found_by_a_parent_that_begins_anew(pumps: Pumps) -> None:
    """Redis lost the parent, and the result with it: SQL has it, and nobody will deliver it again."""
    family = Family()
    pump, handle = to_parked(pumps, family)
    pump.answer(_taken(pump))
    while pump.drain("brainq.finalize"):
        pass
    assert pump.wiring.store.turns.result(child_turn_id(handle.turn_id, "c1-0")) is not None
    lose_redis(pump)
    result = pump.finish(handle)
    assert result.ending is Ending.COMPLETED
    assert family.results(handle) == ["answer to leaf"]
    assert [s.kind for s in result.spends] == ["step", "child", "step"]


def test_parent_and_child_are_found_again_after_redis_lost_both(pumps: Pumps) -> None:
    family = Family()
    pump, handle = to_parked(pumps, family)
    lose_redis(pump)
    result = pump.finish(handle)
    assert result.ending is Ending.COMPLETED
    assert family.results(handle) == ["answer to leaf"]
    assert len(pump.wiring.store.turns.list()) == 2


class Killed(BaseException): ...


def test_a_child_is_paid_for_whose_worker_died_before_the_call_could_park(
    pumps: Pumps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call is `unknown` then, and waits for nothing; what it started has cost its turn all the same."""
    family = Family(effect=Effect.LOCAL_WRITE)
    pump = pumps(family.brain)
    handle = pump.submit("s1", "ask:leaf")
    pump.answer(_taken(pump))

    def dies(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as dying:
        dying.setattr(pump.wiring.state.calls, "park", dies)
        with pytest.raises(Killed):
            pump.answer(_taken(pump, "brainq.tools.local_write"))
    swept_until(pump, lambda: statuses(pump, handle) == {"c1-0": "unknown"}, "the call is given up")
    child = child_of(pump, handle)
    while (bell := _taken(pump)).args[1] != child.turn_id:
        assert bell.args[1] == handle.turn_id
    pump.answer(bell)
    pump.drain("brainq.finalize")
    result = pump.finish(handle)
    assert [spend.kind for spend in result.spends] == ["step", "child", "step"]
    assert result.input_tokens == 300
