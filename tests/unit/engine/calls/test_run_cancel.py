"""What is said of a call whose turn was cancelled while it ran: what is sure, and no more."""

from __future__ import annotations

import re
import threading

import pytest

from brainq.contracts.call import ToolSuccess, ToolUnknown
from brainq.contracts.claim import SettleReply
from brainq.contracts.status import Effect, TraceStatus
from brainq.engine.brain.brain import Brain
from brainq.engine.calls.report import NEVER_STARTED
from brainq.engine.tools.context import RunContext
from brainq.engine.tools.results import Partial, Pending
from tests.support.wait import wait_until
from tests.unit.engine.calls.fakes import Rig

EFFECTS = [Effect.READ_ONLY, Effect.LOCAL_WRITE]
UNKNOWN = r"Cancelled after \d+\.\d s; whether it took effect is not known; check before repeating it\."


@pytest.mark.parametrize("effect", EFFECTS)
def test_a_call_that_returns_in_spite_of_a_cancel_has_completed(brain: Brain, rig: Rig, effect: Effect) -> None:
    @brain.tool(effect=effect)
    def count(ctx: RunContext) -> Partial:  # pyright: ignore[reportUnusedFunction]
        rig.stops.publish()
        assert ctx.token.is_cancelled
        return Partial(ctx.token.reason)

    rig.claim("count", effect)
    assert rig.run() == "settled"
    assert rig.status is TraceStatus.COMPLETED
    assert rig.said.startswith("cancelled\n[incomplete")
    assert rig.stops.watching == []


def give_up(rig: Rig) -> None:
    rig.stops.publish()
    raise TimeoutError("the token has expired")


def test_a_read_that_gives_up_is_cancelled(brain: Brain, rig: Rig) -> None:
    @brain.tool(effect=Effect.READ_ONLY)
    def look() -> None:  # pyright: ignore[reportUnusedFunction]
        give_up(rig)

    rig.claim("look")
    rig.run()
    assert rig.status is TraceStatus.CANCELLED
    assert re.fullmatch(r"Cancelled after \d+\.\d s\.", rig.said)
    assert rig.intents.outcomes == []


def test_a_write_that_gives_up_is_unknown(brain: Brain, rig: Rig) -> None:
    @brain.tool(effect=Effect.LOCAL_WRITE)
    def write() -> None:  # pyright: ignore[reportUnusedFunction]
        give_up(rig)

    rig.claim("write", Effect.LOCAL_WRITE)
    rig.run()
    assert rig.status is TraceStatus.UNKNOWN
    assert re.fullmatch(UNKNOWN, rig.said)
    [(outcome, late)] = rig.intents.outcomes
    assert isinstance(outcome, ToolUnknown)
    assert (outcome.message, late) == (rig.said, False)
    assert rig.log == ["settle unknown"]


def test_a_write_that_failed_before_the_cancel_has_failed(brain: Brain, rig: Rig) -> None:
    @brain.tool(effect=Effect.LOCAL_WRITE)
    def write() -> None:  # pyright: ignore[reportUnusedFunction]
        raise ValueError("no")

    rig.claim("write", Effect.LOCAL_WRITE)
    rig.run()
    assert rig.status is TraceStatus.FAILED


def test_an_abandoned_write_keeps_its_lanes_and_its_end_is_evidence(
    brain: Brain, rig: Rig, release: threading.Event
) -> None:
    @brain.tool(effect=Effect.LOCAL_WRITE)
    def write() -> str:  # pyright: ignore[reportUnusedFunction]
        rig.stops.publish()
        release.wait(60.0)
        return "written"

    rig.claim("write", Effect.LOCAL_WRITE)
    rig.run()
    assert rig.log == ["settle unknown still runs"]
    assert rig.calls.settled[0].notice is None
    rig.beats.beat_now()
    wait_until(lambda: rig.calls.lane_beats > 0, "its lanes are beaten for")

    rig.calls.replies["settle"] = SettleReply("LATE", TraceStatus.UNKNOWN)
    release.set()
    wait_until(lambda: len(rig.log) == 2, "its end is settled, and its lanes left with it")
    assert rig.log == ["settle unknown still runs", "settle completed"]
    assert isinstance(rig.intents.outcomes[0][0], ToolUnknown)
    outcome, late = rig.intents.outcomes[1]
    assert isinstance(outcome, ToolSuccess)
    assert late
    notice = rig.calls.settled[1].notice
    assert notice is not None
    assert "succeeded after all" in notice.content


def test_what_an_abandoned_call_wished_for_late_changes_nothing(
    brain: Brain, rig: Rig, release: threading.Event
) -> None:
    @brain.tool(effect=Effect.LOCAL_WRITE)
    def write(ctx: RunContext) -> Pending:  # pyright: ignore[reportUnusedFunction]
        rig.stops.publish()
        release.wait(60.0)
        return Pending(ctx.outside_token())

    rig.claim("write", Effect.LOCAL_WRITE)
    rig.run()
    rig.calls.replies["settle"] = SettleReply("LATE", TraceStatus.UNKNOWN)
    release.set()
    wait_until(lambda: len(rig.log) == 2, "its end is settled, and its lanes left with it")
    assert rig.calls.parked == []
    assert [settled.notice for settled in rig.calls.settled] == [None, None]


@pytest.mark.parametrize("effect", EFFECTS)
def test_a_stop_between_claim_and_token_is_not_missed(brain: Brain, rig: Rig, effect: Effect) -> None:
    started: list[str] = []

    @brain.tool(effect=effect)
    def quick() -> None:  # pyright: ignore[reportUnusedFunction]
        started.append("started")

    rig.claim("quick", effect)
    rig.calls.on_claim = rig.stops.publish
    rig.run()
    assert started == []
    assert (rig.status, rig.said) == (TraceStatus.CANCELLED, "Cancelled before it started.")
    assert [outcome for outcome, _ in rig.intents.outcomes] == ([] if effect.is_read else [NEVER_STARTED])


def test_a_write_that_finds_its_turn_cancelled_before_it_starts_is_settled(brain: Brain, rig: Rig) -> None:
    @brain.tool(effect=Effect.LOCAL_WRITE)
    def write() -> None:  # pyright: ignore[reportUnusedFunction]
        raise AssertionError("it must not start")

    rig.claim("write", Effect.LOCAL_WRITE)
    rig.calls.word = "CLOSED"
    assert rig.run() == "not started"
    assert (rig.status, rig.said) == (TraceStatus.CANCELLED, "Cancelled before it started.")
    assert rig.log == ["settle cancelled"]


def test_a_lost_claim_leaves_everything_to_the_next_attempt(brain: Brain, rig: Rig) -> None:
    @brain.tool(effect=Effect.LOCAL_WRITE)
    def write() -> None:  # pyright: ignore[reportUnusedFunction]
        raise AssertionError("it must not start")

    rig.claim("write", Effect.LOCAL_WRITE)
    rig.calls.word = "LOST"
    assert rig.run() == "not started"
    assert rig.log == []


def test_a_stop_of_another_turn_is_none_of_ours(brain: Brain, rig: Rig) -> None:
    @brain.tool(effect=Effect.READ_ONLY)
    def look(ctx: RunContext) -> bool:  # pyright: ignore[reportUnusedFunction]
        rig.stops.publish(turn_id="turn-2")
        return ctx.token.is_expired

    rig.claim("look")
    rig.run()
    assert rig.said == "false"


def test_a_function_whose_end_cannot_be_told_keeps_its_lanes_no_longer(
    brain: Brain, rig: Rig, release: threading.Event
) -> None:
    @brain.tool(effect=Effect.LOCAL_WRITE)
    def write() -> None:  # pyright: ignore[reportUnusedFunction]
        rig.stops.publish()
        release.wait(60.0)

    def away(*_: object, **__: object) -> SettleReply:
        tried.append("settle")
        raise ConnectionError("Redis is away")

    tried: list[str] = []
    rounds: list[int] = []

    def probe() -> str:
        rounds.append(rig.calls.lane_beats)
        return "OK"

    def beaten() -> int:
        """The beats of the lanes after a whole round more: the second from now has begun after it."""
        wanted = len(rounds) + 2

        def is_over() -> bool:
            rig.beats.beat_now()
            return len(rounds) >= wanted

        wait_until(is_over, "all were beaten")
        return rig.calls.lane_beats

    rig.claim("write", Effect.LOCAL_WRITE)
    rig.run()
    rig.calls.settle = away
    with rig.beats.renew(probe, lambda _: None):
        before = rig.calls.lane_beats
        assert beaten() > before, "its lanes are kept while it runs"
        release.set()
        wait_until(lambda: bool(tried), "its end was to be told")
        beaten()
        before = rig.calls.lane_beats
        assert beaten() == before, "a sweeper may free its lanes"


@pytest.mark.parametrize("outcome", ["returns", "raises", "cancelled"])
def test_a_person_s_change_of_the_arguments_is_said(brain: Brain, rig: Rig, outcome: str) -> None:
    @brain.tool(effect=Effect.READ_ONLY)
    def look(where: str) -> str:  # pyright: ignore[reportUnusedFunction]
        if outcome == "cancelled":
            give_up(rig)
        if outcome == "raises":
            raise ValueError(where)
        return where

    rig.claim("look", arguments={"where": "h\u00e9re"}, edited=True)
    rig.run()
    assert rig.said.startswith('[A person changed the arguments before this ran: {"where": "h\u00e9re"}]\n'), rig.said
