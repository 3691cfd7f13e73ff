"""What happens between the claim of a call and its function: the deadline, the intent, then the leases."""

from __future__ import annotations

from typing import Literal

import pytest

from brainq.contracts.call import ToolSuccess
from brainq.contracts.rows import VoidResult
from brainq.contracts.status import Effect, TraceStatus
from brainq.engine.brain.brain import Brain
from brainq.engine.calls.executor import BoundedToolExecutor
from brainq.engine.calls.report import NEVER_STARTED
from brainq.engine.tools.context import RunContext
from tests.unit.engine.calls.fakes import Rig


@pytest.fixture
def ran(brain: Brain) -> list[str]:
    """What the tool `send` was called with."""
    given: list[str] = []

    @brain.tool(effect=Effect.LOCAL_WRITE)
    def send(text: str = "") -> str:  # pyright: ignore[reportUnusedFunction]
        given.append(text)
        return "sent"

    return given


def test_a_call_whose_leases_were_lost_after_its_intent_does_not_start(rig: Rig, ran: list[str]) -> None:
    rig.claim("send", Effect.LOCAL_WRITE)
    rig.calls.word = "LOST"
    assert rig.run() == "not started"
    assert (ran, rig.intents.started) == ([], ["c1-0"])
    assert rig.intents.outcomes == [(NEVER_STARTED, False)], "a rescue reads that nothing came of it"


def test_a_call_that_cannot_look_at_its_leases_again_says_that_it_never_started(
    rig: Rig, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_: object) -> str:
        raise ConnectionError("Redis is away")

    rig.claim("send", Effect.LOCAL_WRITE)
    monkeypatch.setattr(rig.calls, "start", away)
    with pytest.raises(ConnectionError):
        rig.run()
    assert (ran, rig.intents.outcomes) == ([], [(NEVER_STARTED, False)])


@pytest.mark.parametrize(
    ("known", "word", "lapses"),
    [
        (VoidResult("void"), "OK", 1),
        (VoidResult("done", NEVER_STARTED.model_dump_json()), "OK", 1),
        (VoidResult("done", ToolSuccess(value=1).model_dump_json()), "OK", 0),
        (VoidResult("started", owner="who may be at work on it"), "OK", 0),
        (VoidResult("void"), "LOST", 0),
    ],
)
def test_an_attempt_that_never_starts_is_let_go_of_at_once(
    rig: Rig, ran: list[str], known: VoidResult, word: str, lapses: int
) -> None:
    rig.claim("send", Effect.LOCAL_WRITE)
    rig.intents.known, rig.calls.word = known, word
    assert rig.run() == "not started"
    assert (ran, len(rig.calls.lapsed)) == ([], lapses)


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_what_needs_redis_comes_before_the_intent(
    brain: Brain, rig: Rig, monkeypatch: pytest.MonkeyPatch, isolation: Literal["thread", "process"]
) -> None:
    """Else a write that nobody began is unknown."""

    @brain.tool(effect=Effect.LOCAL_WRITE, isolation=isolation)
    def send(ctx: RunContext) -> None:  # pyright: ignore[reportUnusedFunction]
        raise AssertionError("it must not run")

    def away(*_: object) -> str:
        raise ConnectionError("Redis is away")

    rig.claim("send", Effect.LOCAL_WRITE)
    if isolation == "process":
        monkeypatch.setattr(rig.calls, "give_token", away)
    else:
        monkeypatch.setattr(rig.calls, "budget", away)
    with pytest.raises(ConnectionError):
        rig.run()
    assert (rig.intents.started, rig.calls.settled) == ([], [])


def test_all_attempts_of_a_call_have_one_idempotency_key(rig: Rig, ran: list[str]) -> None:
    for attempt in (1, 2):
        rig.claim("send", Effect.LOCAL_WRITE, attempt=attempt)
        rig.run()
    assert [row["attempt"] for row in rig.intents.rows] == [1, 2]
    assert {row["idempotency_key"] for row in rig.intents.rows} == {"turn-1:c1-0"}


@pytest.mark.parametrize("redact", [False, True])
def test_an_intent_has_no_arguments_where_no_content_is_kept(executor: BoundedToolExecutor, redact: bool) -> None:
    """Not while the turn lives, either."""
    brain = Brain("calls", "openai:x", redact_logs=redact)

    @brain.tool(effect=Effect.LOCAL_WRITE)
    def send(text: str) -> str:  # pyright: ignore[reportUnusedFunction]
        return "sent"

    rig = Rig(brain, executor)
    rig.claim("send", Effect.LOCAL_WRITE, arguments={"text": "secret"})
    rig.run()
    rig.beats.stop()
    (row,) = rig.intents.rows
    assert row["args_json"] == (None if redact else '{"text": "secret"}')


@pytest.mark.parametrize(("cap_ms", "remaining_ms", "at_most_s"), [(90_000, 60_000, 60.0), (60_000, 90_000, 60.0)])
def test_a_call_has_its_cap_and_never_more_than_its_turn(
    brain: Brain, rig: Rig, cap_ms: int, remaining_ms: int, at_most_s: float
) -> None:
    left: list[float] = []

    @brain.tool(effect=Effect.READ_ONLY)
    def look(ctx: RunContext) -> None:  # pyright: ignore[reportUnusedFunction]
        left.append(ctx.token.remaining_s)

    rig.claim("look", cap_ms=cap_ms, remaining_ms=remaining_ms)
    rig.run()
    assert rig.status is TraceStatus.COMPLETED
    assert at_most_s - 30.0 < left[0] <= at_most_s


def test_a_call_whose_turn_has_no_time_left_never_starts(brain: Brain, rig: Rig) -> None:
    started: list[str] = []

    @brain.tool(effect=Effect.READ_ONLY)
    def look() -> None:  # pyright: ignore[reportUnusedFunction]
        started.append("look")

    rig.claim("look", cap_ms=60_000, remaining_ms=0)
    rig.run()
    assert rig.status is TraceStatus.TIMED_OUT
    assert started == []
