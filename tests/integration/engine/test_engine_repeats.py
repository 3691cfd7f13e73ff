"""Repeats of a call: which are denied, and what the trace says of what was denied."""

from __future__ import annotations

from collections.abc import Callable

from brainq import Brain, Effect, RunContext, ToolError
from brainq.contracts.status import TraceStatus
from brainq.testing import ScriptedProvider, calls, says
from tests.support.pump import Pump

ONE = {"n": 1}


def test_only_a_repeat_that_can_bring_nothing_new_is_denied(pumps: Callable[..., Pump]) -> None:
    script = [
        calls(("step_up", ONE), ("step_up", ONE)),
        calls(("step_up", ONE), ("pay", ONE)),
        calls(("pay", ONE)),
        calls(("flaky", ONE), ("look", ONE)),
        calls(("flaky", ONE), ("look", {"n": "1"}), ("nobody_knows", ONE), ("look", {"n": "2", "m": "x"})),
        calls(("once_only", ONE)),
        calls(("once_only", {"n": 2})),
        says("done"),
    ]
    brain = Brain("repeats", ScriptedProvider(script))
    ran: list[str] = []

    @brain.tool(effect=Effect.LOCAL_WRITE)
    def step_up(n: int) -> str:  # pyright: ignore[reportUnusedFunction]
        ran.append("step_up")
        return f"{n} up"

    @brain.tool(effect=Effect.DESTRUCTIVE, deny_repeats=True)
    def pay(n: int) -> str:  # pyright: ignore[reportUnusedFunction]
        ran.append("pay")
        return "paid"

    @brain.tool(effect=Effect.READ_ONLY)
    def flaky(n: int) -> str:  # pyright: ignore[reportUnusedFunction]
        ran.append("flaky")
        if ran.count("flaky") == 1:
            raise ToolError("The line is busy.", retryable=True)
        return "found"

    @brain.tool(effect=Effect.READ_ONLY)
    def look(n: int, m: int = 0) -> str:  # pyright: ignore[reportUnusedFunction]
        ran.append("look")
        return "seen"

    @brain.tool(effect=Effect.NETWORK)
    def once_only(n: int, ctx: RunContext) -> str:  # pyright: ignore[reportUnusedFunction]
        ran.append("once_only")
        ctx.block_tool()
        return "sent"

    pump = pumps(brain)
    handle = pump.submit("s1", "Go.", limits={"max_steps": 10})
    assert pump.finish(handle).text == "done"
    assert ran == ["step_up"] * 3 + ["pay", "flaky", "look", "flaky", "once_only"]

    trace = pump.wiring.state.calls.trace("s1", handle.turn_id)
    denied = [entry for entry in trace if entry.status is TraceStatus.DENIED]
    assert [(entry.tool, entry.detail, entry.effect) for entry in denied] == [
        ("pay", "duplicate", Effect.DESTRUCTIVE),
        ("look", "duplicate", Effect.READ_ONLY),
        ("nobody_knows", "validation", Effect.DESTRUCTIVE),  # a tool that nobody knows is taken for the strictest
        ("look", "validation", Effect.READ_ONLY),
        ("once_only", "blocked", Effect.NETWORK),
    ]
    rows = pump.wiring.store.traces.of_turn(handle.turn_id)
    kept = {entry.call_id: (entry.effect, entry.retryable, entry.repairs) for entry in rows}
    assert kept == {entry.call_id: (entry.effect, entry.retryable, entry.repairs) for entry in trace}
    assert [entry.call_id for entry in trace if entry.retryable] == ["c4-0"]
    # A denied call counts what was tried to mend it.
    assert pump.client.state("s1", handle.turn_id).validation_repair_counts == {"c5-1": 1, "c5-3": 1}
    told = pump.wiring.state.runtime.results("s1", handle.turn_id)
    assert "no tool has changed anything since" in told["c3-0"]


def test_an_answer_shows_at_most_eight_sources_of_each_kind_the_first_ones(pumps: Callable[..., Pump]) -> None:
    brain = Brain("sources", ScriptedProvider([calls(("look", ONE)), says("done")]), show_citations=True)

    @brain.tool(effect=Effect.READ_ONLY)
    def look(n: int, ctx: RunContext) -> None:  # pyright: ignore[reportUnusedFunction]
        for number in (*range(12), *range(3)):
            ctx.cite_local(f"note-{number}.md")
            ctx.cite_web(f"https://example.org/{number}")

    pump = pumps(brain)
    ended = pump.finish(pump.submit("s1", "Go."))
    assert [citation.source for citation in ended.local_citations] == [f"note-{n}.md" for n in range(8)]
    assert [citation.source for citation in ended.web_citations] == [f"https://example.org/{n}" for n in range(8)]
    assert ("note-7.md" in ended.text, "note-8.md" in ended.text) == (True, False)
