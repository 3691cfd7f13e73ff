"""What users hold in their hands beside a handle: budgets, runtime state, the async client."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from brainq import AsyncClient
from brainq.contracts.brain import Context
from brainq.contracts.message import Message
from brainq.contracts.model import TokenUsage
from brainq.contracts.status import TraceStatus
from brainq.engine import TurnBudget, TurnRuntimeState
from brainq.engine.models.scripted import calls, says
from brainq.errors import ResultTimeout, SetupError, TurnNotFound
from tests.support.brains.obedient import brain, script
from tests.support.people import Pumps, Watched, brain_of, events, parked_since
from tests.support.pump import Pump

READ = ("read", {"name": "r"})
DOCUMENTED = {
    "remaining_s",
    "expired",
    "steps_used",
    "steps_max",
    "tool_calls_used",
    "tool_calls_max",
    "reflections_used",
    "reflections_max",
}


def budget_of(pump: Pump, name: str = "b-1") -> TurnBudget:
    return TurnBudget.create(60.0, 2, None, client=pump.client, session_id="s1", turn_id=name)


def test_a_budget_is_made_once_and_attached_to_by_id(pump: Pump) -> None:
    budget = budget_of(pump)
    with pytest.raises(SetupError, match="attach"):
        budget_of(pump)
    other = TurnBudget(pump.client, "s1", "b-1")
    assert budget.claim_step()
    assert other.snapshot()["steps_used"] == 1
    assert other.snapshot().keys() >= DOCUMENTED
    assert other.snapshot()["tool_calls_max"] == 2  # max_tool_calls=None means max_steps


def test_no_claim_is_granted_past_its_maximum(pump: Pump) -> None:
    budget = budget_of(pump)
    with ThreadPoolExecutor(8) as threads:
        claims = [threads.submit(budget.claim_tool_call) for _ in range(40)]
    granted = [claim.result() for claim in claims]
    assert granted.count(True) == 2
    assert budget.claim_reflection("once")
    assert budget.claim_reflection("once")  # the same claim pays once
    assert budget.snapshot()["reflections_used"] == 1


def test_a_budget_counts_tokens_once_a_spending(pump: Pump) -> None:
    budget = budget_of(pump)
    used = TokenUsage(input_tokens=10, output_tokens=5)
    assert budget.add_tokens(used, 0.25, "step-1")
    assert not budget.add_tokens(used, 0.25, "step-1")
    assert budget.snapshot()["tokens_used"] == 15
    assert budget.snapshot()["cost_usd"] == 0.25


def test_a_tools_time_never_reaches_past_the_deadline(pump: Pump) -> None:
    short = TurnBudget.create(2.0, client=pump.client, session_id="s1", turn_id="b-2")
    assert 0 < short.per_tool_remaining_s(45) <= 2.0
    assert short.per_tool_remaining_s(0.5) == 0.5
    assert 0 < short.tool_deadline(45) - time.monotonic() <= 2.0
    assert 0 < short.tool_deadline(0.5) - time.monotonic() <= 0.5
    assert not short.is_expired
    with pytest.raises(TurnNotFound, match="b-3"):
        _ = TurnBudget(pump.client, "s1", "b-3").remaining_s


def state_of(pump: Pump, turn_id: str) -> TurnRuntimeState:
    return pump.client.state("s1", turn_id)


def test_runtime_state_tells_what_a_turn_gathered(pump: Pump) -> None:
    handle = pump.submit("s1", script([READ], final="found it"))
    pump.finish(handle)
    state = state_of(pump, handle.turn_id)
    assert state.final_text == "found it"
    assert not state.timed_out
    assert not state.context_was_compacted
    assert [entry.status for entry in state.tool_trace] == [TraceStatus.COMPLETED]
    assert list(state.tool_results) == ["c1-0"]
    assert state.input_tokens > 0
    assert state.output_tokens > 0
    assert (state.cache_read_tokens, state.cache_creation_tokens) == (0, 0)
    assert len(state.prompt_render_hash) == 16
    assert state.blocked_tool_names == frozenset()
    assert state.validation_repair_counts == {}
    assert not state.is_accepting_writes


def claimed(pump: Pump) -> tuple[TurnRuntimeState, str]:
    handle = pump.submit("s1", script([READ]))
    bell = pump.take("brainq.turns")
    assert bell is not None
    pump.answer(bell)
    return state_of(pump, handle.turn_id), handle.turn_id


def told(turn_id: str, text: str) -> Message:
    return Message(role="tool", content=text, call_id="c1-0", name="read", turn=turn_id, step=1)


def test_a_trace_that_timed_out_takes_no_result(pump: Pump) -> None:
    state, turn_id = claimed(pump)
    claim = state.set_trace_running("c1-0", 1, "me")
    assert not isinstance(claim, str)
    assert isinstance(state.set_trace_running("c1-0", 1, "somebody else"), str)
    assert state.mark_trace_timed_out(claim, told(turn_id, "timed out"))
    assert not state.complete_trace(claim, told(turn_id, "too late"))
    assert state.tool_results == {"c1-0": "timed out"}
    assert state.tool_trace[0].status is TraceStatus.TIMED_OUT_LATE


def test_a_call_that_failed_may_be_told_to_be_worth_another_try(pump: Pump) -> None:
    state, turn_id = claimed(pump)
    claim = state.set_trace_running("c1-0", 1, "me")
    assert not isinstance(claim, str)
    failed = told(turn_id, "the disk is full")
    assert state.complete_trace(claim, failed, status=TraceStatus.FAILED, retryable=True)
    (entry,) = state.tool_trace
    assert (entry.status, entry.retryable) == (TraceStatus.FAILED, True)


def test_a_shut_gate_takes_no_result(pump: Pump) -> None:
    state, turn_id = claimed(pump)
    claim = state.set_trace_running("c1-0", 1, "me")
    assert not isinstance(claim, str)
    assert state.is_accepting_writes
    assert state.close_writes(by="a test")
    assert not state.close_writes(by="a test")
    assert not state.is_accepting_writes
    assert not state.complete_trace(claim, told(turn_id, "too late"))
    assert state.tool_results == {}


def test_a_turn_whose_gate_is_shut_ends_long_before_its_deadline(pump: Pump) -> None:
    handle = pump.submit("s1", script([READ]))
    bell = pump.take("brainq.turns")
    assert bell is not None
    pump.answer(bell)
    assert state_of(pump, handle.turn_id).close_writes(by="ann")
    result = pump.finish(handle)
    assert (result.ending.value, result.error) == ("cancelled", "its writes were closed by ann")
    assert not state_of(pump, handle.turn_id).close_writes()


def test_the_async_client_submits_follows_and_cancels(pumps: Callable[..., Pump]) -> None:
    pump = pumps()

    async def talk() -> None:
        async with AsyncClient(pump.settings, brain) as client:
            handle = await client.submit("s1", script([READ], final="hello"), request_key="k-1")
            again = await client.submit("s1", script([READ], final="hello"), request_key="k-1")
            assert again.turn_id == handle.turn_id
            assert (handle.created, again.created) == (True, False)
            with pytest.raises(ResultTimeout):
                await handle.result(timeout_s=0.05)
            snapshot = await handle.snapshot()
            assert snapshot is not None
            assert snapshot.awaits == "coordinator"
            await asyncio.to_thread(pump.drain)
            kinds = [event.kind async for event in handle.events(timeout_s=60)]
            assert kinds[0] == "turn.active"
            assert kinds[-1] == "result"
            later = [event.seq async for event in (await client.handle(handle.turn_id)).events(after=3, timeout_s=5)]
            assert later == list(range(4, len(kinds) + 1))
            assert (await handle.result(timeout_s=60)).text == "hello"
            other = await client.submit("s1", script(final="never"))
            assert await other.cancel("changed my mind") == "requested"
            await asyncio.to_thread(pump.drain)
            assert (await other.result(timeout_s=60)).ending == "cancelled"

    asyncio.run(talk())


def test_the_budget_of_a_parked_turn_stands_still_as_its_snapshot_does(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(calls(("write", {"name": "b"})), says("done")), approval=True))
    handle = pump.submit("s1", "Go.", limits={"timeout_s": 20})
    pump.drain()
    parked_since(pump, handle, 60.0)
    budget = pump.client.state("s1", handle.turn_id).budget
    seen = handle.snapshot()
    assert seen is not None
    assert not budget.is_expired
    assert abs(budget.remaining_s - seen.budget.remaining_s) < 0.01
    assert 0 < budget.per_tool_remaining_s(5.0) <= 5.0
    assert budget.claim_reflection()


READS: dict[str, Callable[[TurnRuntimeState], object]] = {
    "usage": lambda state: state.usage,
    "input_tokens": lambda state: state.input_tokens,
    "citations": lambda state: state.citations,
    "tool_trace": lambda state: state.tool_trace,
    "tool_results": lambda state: state.tool_results,
    "blocked_tool_names": lambda state: state.blocked_tool_names,
    "validation_repair_counts": lambda state: state.validation_repair_counts,
    "repairs_by_tool": lambda state: state.repairs_by_tool,
    "final_text": lambda state: state.final_text,
    "last_agent_message": lambda state: state.last_agent_message,
    "timed_out": lambda state: state.timed_out,
    "prompt_render_hash": lambda state: state.prompt_render_hash,
    "context_was_compacted": lambda state: state.context_was_compacted,
    "is_accepting_writes": lambda state: state.is_accepting_writes,
    "budget": lambda state: state.budget.snapshot(),
    "snapshot": lambda state: state.snapshot(),
}


def test_every_property_of_a_turn_that_redis_does_not_know_says_so(pump: Pump) -> None:
    names = {name for name, found in vars(TurnRuntimeState).items() if isinstance(found, property)}
    assert names - READS.keys() == {"output_tokens", "cache_read_tokens", "cache_creation_tokens"}
    for read in READS.values():
        with pytest.raises(TurnNotFound):
            read(state_of(pump, "nobody-1"))


def test_the_newest_text_of_a_model_is_seen_while_its_turn_lives(pumps: Pumps) -> None:
    seen: list[tuple[str, str]] = []

    def look() -> None:
        snapshot = handle.snapshot()
        assert snapshot is not None
        seen.append((snapshot.text, pump.client.state("s1", handle.turn_id).last_agent_message))

    first = says("I look first.").model_copy(update={"calls": calls(("look", {"name": "a"})).calls})
    model = Watched(first, says("done"))
    pump = pumps(brain_of(model))
    handle = pump.submit("s1", "Go.")
    look()
    model.meanwhile[2] = look
    pump.finish(handle)
    look()
    assert seen == [("", ""), ("I look first.",) * 2, ("done", "done")]


def test_results_of_a_review_are_those_of_its_own_history(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(calls(("look", {"name": "a"})), says("done"))))
    handle = pump.submit("s1", "Look at it.", kind="review")
    pump.finish(handle)
    assert state_of(pump, handle.turn_id).tool_results == {"c1-0": "saw a"}


def test_a_context_that_is_nearly_full_is_an_event_and_a_warning(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(says("done")), context=Context(auto_compact=False)))
    handle = pump.submit("s1", "x " * 2_000, limits={"max_context_tokens": 1_600})
    result = pump.finish(handle)
    (told,) = events(handle, "notice")
    full = told.data["context_full"]
    assert isinstance(full, int)
    assert 70 <= full <= 100
    assert result.warnings == (
        f"the model's context was {full} % full; from 85 % on older messages are summarised or left out",
    )
    quiet = pump.submit("s2", "Go.", limits={"max_context_tokens": 100_000})
    assert pump.finish(quiet).warnings == ()
    assert not events(quiet, "notice")
