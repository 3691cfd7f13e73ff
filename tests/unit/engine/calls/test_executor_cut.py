"""What the executor does when the deadline comes first."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from brainq.contracts.call import ToolFailure, ToolOutcome, ToolSuccess, ToolTimeout
from brainq.contracts.turn import Citation
from brainq.engine.calls import executor as executor_module
from brainq.engine.calls.executor import BoundedToolExecutor
from brainq.engine.tools.context import RunContext
from brainq.engine.tools.deadline import DeadlineToken
from brainq.engine.tools.results import Partial
from brainq.engine.tools.tool import make_tool
from tests.support.wait import wait_until
from tests.unit.engine.calls.support import context_for, run, run_in


def test_a_function_past_its_limit_is_abandoned_and_its_late_end_told_once(
    executor: BoundedToolExecutor, release: threading.Event
) -> None:
    late: list[tuple[ToolOutcome, int]] = []

    def slow() -> str:
        release.wait(60.0)
        return f"at last, in {threading.get_ident()}"

    started = time.monotonic()
    outcome = run(
        executor, make_tool(slow), limit_s=1.0, on_late=lambda outcome: late.append((outcome, threading.get_ident()))
    )

    assert time.monotonic() - started < 30.0
    assert isinstance(outcome, ToolTimeout)
    assert outcome.still_running
    assert 500 <= outcome.after_ms < 30_000
    assert late == []

    release.set()
    wait_until(lambda: late, "the late end is told")
    [(ended, thread)] = late
    assert isinstance(ended, ToolSuccess)
    assert ended.value == f"at last, in {thread}"
    assert run(executor, make_tool(slow))
    assert len(late) == 1


def test_a_late_error_is_told_and_a_broken_listener_hurts_nobody(
    executor: BoundedToolExecutor, release: threading.Event
) -> None:
    late: list[ToolOutcome] = []

    def slow() -> None:
        release.wait(60.0)
        raise ValueError("too late")

    def listener(outcome: ToolOutcome) -> None:
        late.append(outcome)
        raise RuntimeError("the listener is broken")

    run(executor, make_tool(slow), limit_s=1.0, on_late=listener)
    release.set()

    wait_until(lambda: late, "the late end is told")
    assert isinstance(late[0], ToolFailure)
    assert late[0].error == "ValueError: too late"


def test_nothing_late_enters_the_context(executor: BoundedToolExecutor, release: threading.Event) -> None:
    late: list[ToolOutcome] = []

    def slow(ctx: RunContext) -> None:
        ctx.cite_local("in time")
        release.wait(60.0)
        ctx.cite_local("late")

    token = DeadlineToken(1.0)
    context = context_for(token)
    outcome = run_in(executor, make_tool(slow), context, on_late=late.append)
    assert isinstance(outcome, ToolTimeout)

    release.set()
    wait_until(lambda: late, "the function ended")
    assert context.outputs().local_citations == (Citation(source="in time"),)


@pytest.mark.usefixtures("long_grace")
def test_a_cooperative_tool_returns_what_it_has_within_the_grace(executor: BoundedToolExecutor) -> None:
    def count(ctx: RunContext) -> Partial:
        ctx.token.wait(60.0)
        return Partial({"reason": ctx.token.reason})

    async def count_async(ctx: RunContext) -> Partial:
        await ctx.token.wait_async(60.0)
        return Partial({"reason": ctx.token.reason})

    for function in (count, count_async):
        outcome = run(executor, make_tool(function), limit_s=1.0)
        assert isinstance(outcome, ToolSuccess), outcome
        assert outcome.partial
        assert outcome.value == {"reason": "deadline"}


def test_partial_before_the_deadline_is_partial_too(executor: BoundedToolExecutor) -> None:
    def early() -> Partial:
        return Partial([1])

    outcome = run(executor, make_tool(early))
    assert isinstance(outcome, ToolSuccess)
    assert (outcome.partial, outcome.value) == (True, [1])


@pytest.mark.usefixtures("long_grace")
def test_giving_up_by_raising_after_the_deadline_is_a_timeout(executor: BoundedToolExecutor) -> None:
    def give_up(ctx: RunContext) -> None:
        ctx.token.wait(60.0)
        raise TimeoutError("out of time")

    outcome = run(executor, make_tool(give_up), limit_s=1.0)
    assert isinstance(outcome, ToolTimeout)
    assert not outcome.still_running


def test_an_async_function_is_cancelled_at_the_deadline(
    executor: BoundedToolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor_module, "GRACE_S", 30.0)
    ended: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    outcome = run(executor, make_tool(slow), limit_s=1.0)

    assert isinstance(outcome, ToolTimeout)
    assert not outcome.still_running
    assert ended == ["cancelled"]


def test_an_async_function_that_swallows_its_cancelling_is_abandoned(executor: BoundedToolExecutor) -> None:
    late: list[ToolOutcome] = []
    stop = asyncio.Event()

    async def stubborn() -> str:
        while not stop.is_set():
            try:
                await stop.wait()
            except asyncio.CancelledError:
                continue
        return "done"

    outcome = run(executor, make_tool(stubborn), limit_s=1.0, on_late=late.append)
    assert isinstance(outcome, ToolTimeout)
    assert outcome.still_running

    async def let_go() -> None:
        stop.set()

    run(executor, make_tool(let_go))
    wait_until(lambda: late, "the late end is told")
    assert isinstance(late[0], ToolSuccess)


def test_an_async_function_that_ends_late_by_its_cancelling_says_nothing_of_its_work(
    executor: BoundedToolExecutor, release: threading.Event
) -> None:
    late: list[ToolOutcome] = []

    async def slow_to_clean_up() -> None:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            await asyncio.to_thread(release.wait, 60.0)
            raise

    outcome = run(executor, make_tool(slow_to_clean_up), limit_s=1.0, on_late=late.append)
    assert isinstance(outcome, ToolTimeout)
    assert outcome.still_running
    release.set()
    wait_until(lambda: late, "the late end is told")
    assert isinstance(late[0], ToolTimeout)


def test_an_async_function_that_could_not_start_in_time_never_starts(
    executor: BoundedToolExecutor, release: threading.Event
) -> None:
    blocked = threading.Event()
    started: list[str] = []
    late: list[ToolOutcome] = []

    async def block() -> None:
        blocked.set()
        release.wait(60.0)

    async def quick() -> None:
        started.append("started")

    with ThreadPoolExecutor(1) as caller:
        first = caller.submit(run, executor, make_tool(block))
        assert blocked.wait(60)
        outcome = run(executor, make_tool(quick), limit_s=1.0, on_late=late.append)
        assert isinstance(outcome, ToolTimeout)
        release.set()
        first.result(20.0)

    wait_until(lambda: late, "its end is told, so that its lane is freed")
    assert started == []
    assert late == [ToolTimeout(after_ms=0)]


def test_cancelling_the_token_cuts_at_once(executor: BoundedToolExecutor, release: threading.Event) -> None:
    begun = threading.Event()

    def slow() -> None:
        begun.set()
        release.wait(60.0)

    token = DeadlineToken(600.0)

    def cancel() -> None:
        assert begun.wait(60)
        token.cancel("the user said stop")

    threading.Thread(target=cancel).start()
    outcome = run_in(executor, make_tool(slow), context_for(token))

    assert isinstance(outcome, ToolTimeout)
    assert outcome.still_running
    assert outcome.after_ms < 20_000


def test_a_call_whose_time_is_up_never_starts(executor: BoundedToolExecutor) -> None:
    started: list[str] = []

    def quick() -> None:
        started.append("started")

    assert run(executor, make_tool(quick), limit_s=0.0) == ToolTimeout(after_ms=0)
    assert started == []
