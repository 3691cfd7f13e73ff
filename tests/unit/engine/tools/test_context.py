"""What a tool leaves in its context."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from brainq.contracts.call import parse_outside_token
from brainq.contracts.claim import CallRef
from brainq.contracts.turn import Citation
from brainq.engine.tools.context import FileChange, RunContext, SideOutputs
from brainq.engine.tools.deadline import DeadlineToken
from brainq.engine.tools.results import ToolError


def context(is_ready: Callable[[], bool] | None = None, limit_s: float = 60.0) -> RunContext:
    return RunContext(
        session_id="s", turn_id="turn", call_id="c2-1", token=DeadlineToken(limit_s), attempt=2, is_ready=is_ready
    )


def test_the_idempotency_key_is_the_same_for_every_attempt() -> None:
    assert context().idempotency_key == "turn:c2-1"


def test_outputs_keep_their_order_and_no_repeats() -> None:
    run = context()
    run.cite_local("b.md", "B")
    run.cite_local("a.md")
    run.cite_local("b.md", "B")
    run.cite_web("https://example.org/", quote="q")
    run.rendered("/tmp/plot.png")
    run.rendered("/tmp/plot.png")
    run.block_tool()

    assert run.outputs() == SideOutputs(
        (Citation(source="b.md", title="B"), Citation(source="a.md")),
        (Citation(source="https://example.org/", quote="q"),),
        ("/tmp/plot.png",),
        True,
    )


def test_a_sealed_context_takes_nothing_more() -> None:
    run, other = context(), context()
    run.cite_local("kept")
    run.record_change("kept", None, "x")
    other.cite_web("https://example.org/")
    other.record_change("late", None, "x")
    run.seal()

    run.cite_local("late")
    run.cite_web("late")
    run.rendered("late")
    run.block_tool()
    run.record_change("late", None, "x")
    run.absorb(other.outputs())

    assert run.outputs() == SideOutputs((Citation(source="kept"),), changes=(FileChange("kept", None, "x"),))


def test_outputs_of_another_process_are_added() -> None:
    run, other = context(), context()
    run.cite_local("a")
    other.cite_local("a")
    other.cite_local("b")
    other.block_tool()
    run.record_change("a", None, "1")
    other.record_change("a", "1", "2")

    run.absorb(other.outputs())

    assert run.outputs() == SideOutputs(
        (Citation(source="a"), Citation(source="b")),
        block_tool=True,
        changes=(FileChange("a", None, "1"), FileChange("a", "1", "2")),
    )


def test_a_token_that_redis_cannot_note_is_no_fault_of_the_tool_s() -> None:
    """The model reads neither a driver's error nor an address, and may try again."""

    def away(token: str) -> str:
        raise ConnectionError("Error 111 connecting to redis.example:6379")

    run = RunContext(session_id="s", turn_id="turn", call_id="c1-0", token=DeadlineToken(60), give_token=away)
    with pytest.raises(ToolError) as raised:
        run.outside_token()
    assert raised.value.retryable
    assert "token of this call could not be stored" in raised.value.text
    assert "redis" not in raised.value.text


def test_the_outside_token_is_one_an_attempt_and_names_the_call() -> None:
    run = context()
    with ThreadPoolExecutor(8) as asking:
        tokens = {asking.submit(run.outside_token).result() for _ in range(20)}
    assert len(tokens) == 1
    assert parse_outside_token(tokens.pop()) == CallRef("s", "turn", "c2-1")
    assert context().outside_token() != context().outside_token()


class Ready:
    """Says no `times` times, or raises where `fails`, and then yes."""

    def __init__(self, times: int, *, fails: bool = False) -> None:
        self.left = times
        self.fails = fails

    def __call__(self) -> bool:
        self.left -= 1
        if self.left >= 0 and self.fails:
            raise ConnectionError("Redis is away")
        return self.left < 0


def wait(run: RunContext, how: str, timeout_s: float | None = None) -> bool:
    return run.wait_ready(timeout_s) if how == "plain" else asyncio.run(run.wait_ready_async(timeout_s))


BOTH = pytest.mark.parametrize("how", ["plain", "async"])


@BOTH
@pytest.mark.parametrize("fails", [False, True])
def test_waiting_ends_when_the_turn_is_ready(how: str, fails: bool, caplog: pytest.LogCaptureFixture) -> None:
    ready = Ready(2, fails=fails)
    assert wait(context(ready), how)
    assert ready.left == -1
    assert ("readiness not known" in caplog.text) is fails


@BOTH
def test_waiting_ends_with_its_own_time(how: str) -> None:
    ready = Ready(10_000)
    assert not wait(context(ready), how, timeout_s=0.0)
    assert ready.left == 9_999, "it was asked once"
    assert not wait(context(ready), how, timeout_s=0.05)


@BOTH
def test_waiting_ends_with_the_call(how: str) -> None:
    assert not wait(context(Ready(10_000), limit_s=0.05), how)
    cancelled = context(Ready(10_000), limit_s=600.0)
    timer = threading.Timer(0.05, cancelled.token.cancel, args=("cancelled",))
    timer.start()
    assert not wait(cancelled, how)
    timer.join()


@BOTH
def test_a_context_made_by_hand_is_ready(how: str) -> None:
    assert wait(context(), how)
