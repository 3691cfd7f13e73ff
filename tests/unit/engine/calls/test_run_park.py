"""Calls that wait for a result from outside, or for the task of a server."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from brainq.contracts.call import ChildTurn, new_outside_token, parse_outside_token
from brainq.contracts.claim import CallRef, SettleReply, SettleResult
from brainq.contracts.status import Effect, TraceStatus
from brainq.engine.brain.brain import Brain
from brainq.engine.calls.server_tasks import MAX_DELAY_S, MIN_DELAY_S, poll_delay_s
from brainq.engine.tools.context import RunContext
from brainq.engine.tools.results import Pending
from brainq.errors import InvalidInput
from tests.unit.engine.calls.fakes import REF, Rig


@pytest.fixture
def hooked(brain: Brain) -> list[Any]:
    """What the hook after a tool was told."""
    told: list[Any] = []
    brain.on_post_tool_use(told.append)
    return told


def tool_that(brain: Brain, returns: Callable[[RunContext], Any]) -> None:
    @brain.tool(effect=Effect.LOCAL_WRITE)
    def send(ctx: RunContext) -> Any:  # pyright: ignore[reportUnusedFunction]
        ctx.cite_web("https://example.org/job")
        ctx.record_change("a.txt", None, "new")
        ctx.block_tool()
        return returns(ctx)


def test_a_pending_call_parks_with_what_it_left(brain: Brain, rig: Rig, hooked: list[Any]) -> None:
    tool_that(brain, lambda ctx: Pending(ctx.outside_token(), timeout_s=60.0))
    rig.claim("send", Effect.LOCAL_WRITE)

    assert rig.run() == "parked"
    [parked] = rig.calls.parked
    assert (parked.park, parked.timeout_s, parked.block_tool) == ("outside", 60.0, True)
    assert parse_outside_token(parked.token) == REF
    assert [row["source"] for row in parked.sources] == ["https://example.org/job"]
    assert parked.changes == [{"path": "a.txt", "after": "new"}]
    assert rig.log == ["park outside"]
    assert rig.intents.started == ["c1-0"]
    assert rig.intents.outcomes == [], "the intent stays open until the result comes"
    assert rig.outside is not None
    assert rig.outside.tokens == {}, "a token that names its call need not be kept"
    assert hooked == []


@pytest.mark.parametrize("word", ["PARKED", "SETTLED", "LATE", "LOST"])
def test_whatever_becomes_of_the_park_the_call_is_not_settled(brain: Brain, rig: Rig, word: SettleResult) -> None:
    tool_that(brain, lambda ctx: Pending(ctx.outside_token()))
    rig.calls.replies["park"] = SettleReply(word)
    rig.claim("send", Effect.LOCAL_WRITE)
    assert rig.run() == word.lower()
    assert rig.calls.settled == []


def test_a_token_of_the_tool_s_own_is_registered_before_the_call_parks(brain: Brain, rig: Rig) -> None:
    tool_that(brain, lambda _: Pending("job-17", timeout_s=60.0))
    rig.claim("send", Effect.LOCAL_WRITE)
    assert rig.run() == "parked"
    assert rig.outside is not None
    assert rig.outside.tokens == {"job-17": (REF, 60.0)}
    assert rig.run() == "parked", "the same call may register it again"


@pytest.mark.parametrize("token", ["job-17", new_outside_token(CallRef("s", "turn-1", "c1-1"))], ids=["own", "outside"])
def test_a_token_of_another_call_is_refused(brain: Brain, rig: Rig, token: str, hooked: list[Any]) -> None:
    tool_that(brain, lambda _: Pending(token))
    assert rig.outside is not None
    rig.outside.tokens["job-17"] = (CallRef("s", "turn-0", "c1-0"), 60.0)
    rig.claim("send", Effect.LOCAL_WRITE)
    rig.run()
    assert rig.status is TraceStatus.FAILED
    assert "token is in use" in rig.said
    assert token not in rig.said
    assert rig.calls.parked == []
    assert len(hooked) == 1
    assert len(rig.intents.outcomes) == 1


def test_a_child_turn_is_started_before_the_call_parks(brain: Brain, rig: Rig) -> None:
    child = ChildTurn("Sum it up.", session_id="other", timeout_s=30.0, options={"model": "openai:y"})
    tool_that(brain, lambda _: child)
    rig.claim("send", Effect.LOCAL_WRITE)
    assert rig.run() == "parked"
    assert rig.children is not None
    assert rig.children.started == [child]
    [parked] = rig.calls.parked
    assert (parked.park, parked.token, parked.timeout_s) == ("child", "child-1", 30.0)
    assert rig.children.stopped == []


@pytest.mark.parametrize(("word", "stopped"), [("LATE", ["child-1"]), ("LOST", []), ("SETTLED", [])])
def test_a_child_nobody_waits_for_is_stopped(brain: Brain, rig: Rig, word: SettleResult, stopped: list[str]) -> None:
    tool_that(brain, lambda _: ChildTurn("Sum it up."))
    rig.calls.replies["park"] = SettleReply(word)
    rig.claim("send", Effect.LOCAL_WRITE)
    assert rig.run() == word.lower()
    assert rig.children is not None
    assert rig.children.stopped == stopped


@pytest.mark.parametrize(
    "answer", [("REFUSED", "at most 3 deep"), InvalidInput("model", "at most 3 deep")], ids=["word", "error"]
)
def test_a_refused_child_turn_is_the_call_s_failure(
    brain: Brain, rig: Rig, answer: tuple[str, str] | Exception
) -> None:
    tool_that(brain, lambda _: ChildTurn("Sum it up."))
    assert rig.children is not None
    rig.children.answer = answer
    rig.claim("send", Effect.LOCAL_WRITE)
    rig.run()
    assert rig.status is TraceStatus.FAILED
    assert rig.calls.settled[0].detail == "ChildRefused"
    assert "at most 3 deep" in rig.said
    assert rig.calls.parked == []


@pytest.mark.parametrize("wish", [Pending("job-17"), ChildTurn("Sum it up.")], ids=["token", "child"])
def test_what_the_worker_lacks_is_named(brain: Brain, rig: Rig, wish: object) -> None:
    tool_that(brain, lambda _: wish)
    rig.outside = rig.children = None
    rig.claim("send", Effect.LOCAL_WRITE)
    rig.run()
    assert rig.calls.settled[0].detail == "SetupError"
    assert "this worker cannot" in rig.said


def test_changes_of_a_call_that_completed_are_settled_with_it(brain: Brain, rig: Rig) -> None:
    tool_that(brain, lambda _: "done")
    rig.claim("send", Effect.LOCAL_WRITE)
    rig.run()
    assert rig.calls.settled[0].changes == [{"path": "a.txt", "after": "new"}]
    json.dumps(rig.calls.settled[0].changes)


def test_a_tool_can_wait_until_its_turn_is_ready(brain: Brain, rig: Rig) -> None:
    waiting = threading.Event()

    @brain.tool(effect=Effect.READ_ONLY)
    def look(ctx: RunContext) -> list[bool]:  # pyright: ignore[reportUnusedFunction]
        before = ctx.wait_ready(timeout_s=0.0)
        waiting.set()
        return [before, ctx.wait_ready(timeout_s=30.0)]

    def release() -> None:
        assert waiting.wait(60)
        rig.holds.ready = True

    rig.claim("look")
    releasing = threading.Thread(target=release)
    releasing.start()
    rig.run()
    releasing.join()
    assert rig.said == "[false,true]"


@pytest.mark.parametrize(
    ("poll_ms", "watched_s", "failures", "expected_s"),
    [
        (0, 0.0, 0, MIN_DELAY_S),  # it does not say
        (50, 0.0, 0, MIN_DELAY_S),
        (5_000, 0.0, 0, 5.0),
        (5_000, 30.0, 0, 5.0),
        (1_000, 120.0, 0, 12.0),  # a long task is asked for rarely
        (1_000, 86_400.0, 0, MAX_DELAY_S),
        (3_600_000, 0.0, 0, MAX_DELAY_S),
        (1_000, 0.0, 3, 8.0),
        (1_000, 0.0, 1_000, MAX_DELAY_S),
    ],
)
def test_the_pace_is_the_server_s_within_bounds(
    poll_ms: int, watched_s: float, failures: int, expected_s: float
) -> None:
    assert poll_delay_s(poll_ms, watched_s, failures) == expected_s
