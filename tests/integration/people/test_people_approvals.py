"""Approvals: a call that needs one does not start before a person lets it, and each is decided once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from brainq.client.handle import TurnHandle
from brainq.client.operator import Operator
from brainq.contracts.brain import Approvals
from brainq.contracts.people import Approval
from brainq.contracts.status import Effect, Ending
from brainq.engine.models.scripted import calls, says
from brainq.engine.people.approvals import ApprovalDesk
from brainq.errors import ApprovalDecided, ApprovalNotFound, InvalidInput
from tests.support.people import (
    Pumps,
    Watched,
    awaits,
    brain_of,
    events,
    lose_redis,
    parked_since,
    statuses,
    swept_until,
    time_is_up,
)
from tests.support.pump import Pump

WRITE = calls(("write", {"name": "b"}))


def parked(
    pumps: Pumps, ran: list[str], *, model: Watched | None = None, **options: Any
) -> tuple[Pump, TurnHandle, Approval]:
    """A turn whose one write waits for an approval."""
    pump = pumps(brain_of(model or Watched(WRITE, says("done")), ran, **{"approval": True, **options}))
    handle = pump.submit("s1", "Go.")
    pump.drain()
    assert (awaits(handle), ran) == ("parked people", [])
    (approval,) = pump.client.approvals()
    return pump, handle, approval


def _dear(arguments: dict[str, Any]) -> str | None:
    return "b is dear" if arguments["name"] == "b" else None


@pytest.mark.parametrize(
    ("rule", "reason"),
    [(True, "every call of this tool needs an approval"), ("it costs money", "it costs money"), (_dear, "b is dear")],
    ids=["always", "a reason", "a function"],
)
def test_a_tool_says_which_of_its_calls_need_an_approval(pumps: Pumps, rule: Any, reason: str) -> None:
    ran: list[str] = []
    model = Watched(WRITE, says("done"))
    pump, handle, approval = parked(pumps, ran, model=model, approval=rule)
    assert (approval.id, approval.tool, approval.effect) == (f"{handle.turn_id}-c1-0", "write", Effect.LOCAL_WRITE)
    assert (approval.arguments, approval.reason, approval.state) == ({"name": "b"}, reason, "pending")
    assert approval.expires_at > approval.created_at
    decided = pump.client.approve(approval.id, by="Ann")
    assert (decided.state, decided.decided_by) == ("approved", "Ann")
    assert pump.finish(handle).text == "done"
    assert (ran, model.results(2)) == (["write b"], ["wrote b"])
    (kept,) = handle.approvals()
    assert (kept.state, kept.decided_by, kept.edited) == ("approved", "Ann", False)
    assert [e.data["reason"] for e in events(handle, "approval.requested")] == [reason]
    assert [e.data["decision"] for e in events(handle, "approval.decided")] == ["approved"]


def test_a_function_lets_the_calls_through_that_need_none(pumps: Pumps) -> None:
    ran: list[str] = []
    pump = pumps(brain_of(Watched(WRITE, says("done")), ran, approval=lambda arguments: arguments["name"] != "b"))
    pump.finish(pump.submit("s1", "Go."))
    assert ran == ["write b"]
    assert pump.client.approvals(state="all") == ()


def test_a_brain_may_want_approvals_for_an_effect(pumps: Pumps) -> None:
    ran: list[str] = []
    model = Watched(calls(("note", {"name": "a"}), ("write", {"name": "b"})), says("done"))
    pump, handle, approval = parked_by_effect(pumps, model, ran)
    assert approval.call_id == "c1-1", "a tool with approval=False is exempt"
    pump.client.approve(approval.id)
    pump.finish(handle)
    assert ran == ["note a", "write b"]


def parked_by_effect(pumps: Pumps, model: Watched, ran: list[str]) -> tuple[Pump, TurnHandle, Approval]:
    pump = pumps(brain_of(model, ran, approvals=Approvals(effects=(Effect.LOCAL_WRITE,))))
    handle = pump.submit("s1", "Go.")
    pump.drain()
    (approval,) = pump.client.approvals(session="s1")
    return pump, handle, approval


def paged(approvals: Callable[..., tuple[Approval, ...]]) -> list[Approval]:
    """All of them, two a page."""
    found = list(approvals(limit=2))
    while page := approvals(limit=2, after=found[-1].id):
        found += page
    return found


def test_several_calls_of_one_reply_are_asked_for_at_once(pumps: Pumps) -> None:
    ran: list[str] = []
    model = Watched(calls(*(("write", {"name": name}) for name in "abc")), says("done"))
    pump = pumps(brain_of(model, ran, approval=True))
    handle = pump.submit("s1", "Go.")
    pump.drain()
    asked = handle.approvals()
    assert [a.call_id for a in asked] == ["c1-0", "c1-1", "c1-2"]
    assert paged(pump.client.approvals) == list(reversed(asked))
    with Operator(pump.settings) as operator:
        assert paged(operator.approvals) == list(reversed(asked))
        with pytest.raises(InvalidInput, match="approval 't-9-c1-0' does not exist"):
            operator.approvals(after="t-9-c1-0")
    foreigners: list[dict[str, Any]] = [{"after": "t-9-c1-0"}, {"after": asked[0].id, "session_prefixes": ("other:",)}]
    for foreign in foreigners:
        with pytest.raises(InvalidInput, match=r"after: approval .* does not exist"):
            pump.client.approvals(**foreign)
    # The model's order stands, in whatever order people answer.
    pump.client.approve(asked[2].id)
    pump.drain()
    assert ran == []
    pump.client.deny(asked[1].id, reason="not that one")
    assert len(pump.client.approvals()) == 1
    pump.drain()
    assert (ran, awaits(handle)) == ([], "parked people")
    pump.client.approve(asked[0].id)
    pump.finish(handle)
    assert ran == ["write a", "write c"]
    assert model.results(2) == ["wrote a", "Not run: a person refused it: not that one.", "wrote c"]


def test_a_denial_is_told_to_the_model_and_it_goes_on(pumps: Pumps) -> None:
    ran: list[str] = []
    model = Watched(WRITE, says("understood"))
    pump, handle, approval = parked(pumps, ran, model=model)
    assert pump.client.deny(approval.id, reason="too dear", by="Bo").comment == "too dear"
    assert pump.finish(handle).text == "understood"
    assert model.results(2) == ["Not run: a person refused it: too dear."]
    [entry] = pump.wiring.state.calls.trace("s1", handle.turn_id)
    assert (entry.status, entry.detail, ran) == ("denied", "approval", [])
    assert pump.wiring.store.calls.of_turn(handle.turn_id) == []


def test_an_edit_runs_with_the_persons_arguments_and_says_so(pumps: Pumps) -> None:
    ran: list[str] = []
    model = Watched(WRITE, says("done"))
    pump, handle, approval = parked(pumps, ran, model=model)
    with pytest.raises(InvalidInput) as refused:
        pump.client.edit(approval.id, {"name": 7})
    assert refused.value.field == "arguments.name"
    with pytest.raises(InvalidInput):
        pump.client.edit(approval.id, {})
    with pytest.raises(ApprovalDecided):
        pump.client.edit(approval.id, {"name": "c"}, args_hash="of something else")
    edited = pump.client.edit(approval.id, {"name": "c"}, by="Ann", args_hash=approval.args_hash)
    assert (edited.state, edited.edited, edited.arguments) == ("approved", True, {"name": "c"})
    assert pump.client.edit(approval.id, {"name": "c"}).state == "approved"
    assert pump.client.edit(approval.id, {"name": "c"}, args_hash=approval.args_hash).state == "approved"
    with pytest.raises(ApprovalDecided):
        pump.client.edit(approval.id, {"name": "d"})
    with pytest.raises(ApprovalDecided):
        pump.client.deny(approval.id)
    pump.finish(handle)
    assert ran == ["write c"]
    (result,) = model.results(2)
    assert result.endswith("]\nwrote c")
    assert '{"name": "c"}' in result
    (row,) = pump.wiring.store.calls.of_turn(handle.turn_id)
    assert json.loads(row.args_json or "") == {"name": "c"}
    (kept,) = handle.approvals()
    assert (kept.edited, kept.arguments, kept.args_hash) == (True, {"name": "c"}, edited.args_hash)
    assert row.args_hash == edited.args_hash != approval.args_hash


def test_an_edit_asks_for_the_lanes_of_the_new_arguments(pumps: Pumps) -> None:
    """Two calls that are to write one note after an edit do not overlap, though they were to write two."""
    ran: list[str] = []
    brain = brain_of(Watched(calls(("keyed", {"name": "a"})), says("done")), ran)

    @brain.tool(effect=Effect.LOCAL_WRITE, resources=("note:{name}",), approval=True)
    def keyed(name: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Write a note."""
        ran.append(f"keyed {name}")
        return "ok"

    pump = pumps(brain)
    handle = pump.submit("s1", "Go.")
    pump.drain()
    pump.client.edit(f"{handle.turn_id}-c1-0", {"name": "b"})
    [entry] = pump.wiring.state.calls.trace("s1", handle.turn_id)
    assert "note:b" in entry.lanes
    assert "note:a" not in entry.lanes
    pump.finish(handle)
    assert ran == ["keyed b"]


def test_a_read_that_needs_an_approval_waits_beside_reads_that_go_on(pumps: Pumps) -> None:
    ran: list[str] = []
    model = Watched(calls(("peek", {"name": "p"}), ("look", {"name": "a"})), says("done"))
    brain = brain_of(model, ran)

    @brain.tool(effect=Effect.READ_ONLY, resources=("vault:{name}",), approval="it is private")
    def peek(name: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Look at what is private."""
        ran.append(f"peek {name}")
        return f"peeked {name}"

    pump = pumps(brain)
    handle = pump.submit("s1", "Go.")
    hold = handle.hold()
    pump.drain("brainq.turns")
    assert awaits(handle) == "active calls"
    pump.drain()
    assert (ran, awaits(handle)) == (["look a"], "parked people")
    pump.client.edit(f"{handle.turn_id}-c1-0", {"name": "q"})
    entry = pump.wiring.state.calls.trace("s1", handle.turn_id)[0]
    assert entry.lanes == (), "a read holds no lanes"
    pump.finish(handle)
    assert ran == ["look a", "peek q"], "a hold keeps no read"
    assert model.results(2)[1] == "saw a"
    assert not hold.release()


def test_a_decision_is_bound_to_the_arguments_that_were_seen(pumps: Pumps) -> None:
    pump, handle, approval = parked(pumps, [])
    with pytest.raises(ApprovalDecided) as stale:
        pump.client.approve(approval.id, args_hash="of something else")
    assert stale.value.state == "pending"
    assert awaits(handle) == "parked people"
    assert pump.client.approve(approval.id, args_hash=approval.args_hash).state == "approved"


def test_a_decision_stands_whoever_decides_again(pumps: Pumps) -> None:
    ran: list[str] = []
    pump, handle, approval = parked(pumps, ran)
    first = pump.client.approve(approval.id, by="Ann")
    assert pump.client.approve(approval.id, by="Bo") == first
    with pytest.raises(ApprovalDecided) as other:
        pump.client.deny(approval.id)
    assert other.value.state == "approved"
    pump.finish(handle)
    assert pump.client.approve(approval.id).state == "approved"
    with pytest.raises(ApprovalDecided):
        pump.client.deny(approval.id)
    assert ran == ["write b"]
    with pytest.raises(ApprovalNotFound):
        pump.client.approve(f"{handle.turn_id}-c9-9")
    with pytest.raises(InvalidInput):
        pump.client.approve("nothing")


def test_a_decider_that_died_before_sql_was_told(pumps: Pumps, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    pump, handle, approval = parked(pumps, ran)
    with monkeypatch.context() as dying:
        dying.setattr(ApprovalDesk, "_record_in_sql", _dies)
        with pytest.raises(KeyboardInterrupt):
            pump.client.approve(approval.id, by="Ann")
    assert pump.client.approvals() == ()
    assert [a.id for a in pump.client.approvals(state="approved")] == [approval.id]
    # Nor was the call queued: the sweeper has it take its lanes.
    pump.finish(handle)
    assert ran == ["write b"]
    row = pump.wiring.store.approvals.get(handle.turn_id, "c1-0")
    assert row is not None
    assert (row.state, row.decided_by) == ("approved", "Ann")


def _dies(*_: object) -> None:
    raise KeyboardInterrupt


def test_nobody_decides_in_time(pumps: Pumps) -> None:
    ran: list[str] = []
    model = Watched(WRITE, says("I could not."))
    pump, handle, approval = parked(pumps, ran, model=model)
    time_is_up(pump, handle)
    swept_until(pump, lambda: statuses(pump, handle)["c1-0"] == "denied", "it expired")
    with pytest.raises(ApprovalDecided) as late:
        pump.client.approve(approval.id)
    assert late.value.state == "expired"
    result = pump.finish(handle)
    assert (result.text, ran) == ("I could not.", [])
    assert model.results(2) == ["Not run: nobody approved it in time."]
    assert [a.state for a in handle.approvals()] == ["expired"]
    assert [e.data["decision"] for e in events(handle, "approval.decided")] == ["expired"]


def test_an_approval_that_comes_too_late_lets_the_turn_go_on_denied(pumps: Pumps) -> None:
    """No sweeper has looked yet: the decision itself finds that the time is up."""
    ran: list[str] = []
    pump, handle, approval = parked(pumps, ran)
    time_is_up(pump, handle)
    with pytest.raises(ApprovalDecided):
        pump.client.approve(approval.id)
    assert statuses(pump, handle) == {"c1-0": "denied"}
    assert pump.finish(handle).ending is Ending.COMPLETED
    assert ran == []


def test_waiting_for_people_takes_none_of_the_turns_time(pumps: Pumps) -> None:
    ran: list[str] = []
    pump = pumps(brain_of(Watched(WRITE, says("done")), ran, approval=True))
    handle = pump.submit("s1", "Go.", limits={"timeout_s": 20})
    pump.drain()
    parked_since(pump, handle, 60.0)
    pump.sweep()
    pump.client.approve(f"{handle.turn_id}-c1-0")
    result = pump.finish(handle)
    assert (result.ending, ran) == (Ending.COMPLETED, ["write b"])
    assert result.parked_ms >= 60_000


def test_a_turn_that_is_cancelled_makes_its_approvals_void(pumps: Pumps) -> None:
    ran: list[str] = []
    pump, handle, approval = parked(pumps, ran)
    handle.cancel()
    with pytest.raises(ApprovalDecided):
        pump.client.approve(approval.id)
    assert pump.finish(handle).ending is Ending.CANCELLED
    assert [a.state for a in handle.approvals()] == ["void"]
    with pytest.raises(ApprovalDecided) as over:
        pump.client.approve(approval.id)
    assert (over.value.state, ran) == ("void", [])


def test_redacted_sql_keeps_no_arguments_and_people_see_them_while_they_decide(pumps: Pumps) -> None:
    ran: list[str] = []
    pump, handle, approval = parked(pumps, ran, redact_logs=True)
    assert approval.arguments == {"name": "b"}
    row = pump.wiring.store.approvals.get(handle.turn_id, "c1-0")
    assert row is not None
    assert row.arguments is None
    pump.client.edit(approval.id, {"name": "c"})
    row = pump.wiring.store.approvals.get(handle.turn_id, "c1-0")
    assert row is not None
    assert row.arguments is None
    pump.finish(handle)
    row = pump.wiring.store.approvals.get(handle.turn_id, "c1-0")
    assert row is not None
    assert (row.state, row.arguments, row.edited, ran) == ("approved", None, True, ["write c"])


@pytest.mark.parametrize("first", ["approval", "hold"])
def test_an_approval_and_a_hold_are_both_waited_for(pumps: Pumps, first: str) -> None:
    ran: list[str] = []
    pump = pumps(brain_of(Watched(WRITE, says("done")), ran, approval=True))
    handle = pump.submit("s1", "Go.")
    hold = handle.hold()
    pump.drain()
    let = [lambda: pump.client.approve(f"{handle.turn_id}-c1-0"), hold.release]
    for go in let if first == "approval" else reversed(let):
        assert ran == []
        go()
        pump.drain()
    pump.finish(handle)
    assert ran == ["write b"]
    told = [e.data["why"] for e in events(handle, "call.parked")]
    assert told == (["approval", "hold"] if first == "approval" else ["approval"])


def test_an_approval_is_asked_for_again_after_redis_lost_the_turn(pumps: Pumps) -> None:
    ran: list[str] = []
    pump, handle, approval = parked(pumps, ran)
    lose_redis(pump)
    pump.drain()
    (again,) = pump.client.approvals()
    assert (again.id, again.state) == (approval.id, "pending")
    pump.client.approve(again.id)
    pump.finish(handle)
    assert ran == ["write b"]


def test_a_decision_that_redis_lost_with_the_turn_is_asked_for_again(pumps: Pumps) -> None:
    """The call did not start before the loss: what was decided went with the arguments it was decided for."""
    ran: list[str] = []
    pump, handle, approval = parked(pumps, ran)
    pump.client.approve(approval.id, by="Ann")
    lose_redis(pump)
    pump.drain()
    assert (awaits(handle), ran) == ("parked people", [])
    assert [a.state for a in handle.approvals()] == ["pending"]
    assert pump.client.approve(approval.id, by="Bo").state == "approved"
    pump.finish(handle)
    assert ran == ["write b"]


def test_a_repeated_call_is_refused_without_asking_anybody_twice(pumps: Pumps) -> None:
    """The same call again succeeded already: it is refused, and its approval is no use to anybody."""
    ran: list[str] = []
    model = Watched(WRITE, WRITE, says("done"))
    pump, handle, approval = parked(pumps, ran, model=model)
    pump.client.approve(approval.id)
    pump.finish(handle)
    assert ran == ["write b"]
    assert len(handle.approvals()) == 1


@pytest.mark.parametrize("decided", ["approve", "deny"])
def test_a_turn_that_goes_on_is_looked_at_soon(pumps: Pumps, decided: str) -> None:
    """One that is parked is looked at seldom; what is lost once it goes on must not wait for that."""
    ran: list[str] = []
    pump = pumps(brain_of(Watched(WRITE, says("done")), ran, approval=True), rering_s=5.0)
    handle = pump.submit("s1", "Go.")
    pump.drain()
    pump.sweep()
    (approval,) = pump.client.approvals()
    assert _looked_at_in_s(pump, handle) > 20
    getattr(pump.client, decided)(approval.id)
    assert _looked_at_in_s(pump, handle) <= 5.1


def _looked_at_in_s(pump: Pump, handle: TurnHandle) -> float:
    client: Any = pump.wiring.state.redis
    seconds, micros = client.time()
    due_ms = client.zscore(pump.wiring.state.keys.index, f"{handle.session_id} {handle.turn_id}")
    return due_ms / 1000 - seconds - micros / 1e6
