"""What a turn does next, for every reason it can have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from brainq.contracts.brain import ThinkLevel
from brainq.contracts.status import Awaits, Ending, StopReason
from brainq.engine.turn.decide import (
    BUDGET_ENDS,
    COMPACTED,
    FALLBACK_TEXTS,
    MAX_LOST_WORKERS,
    MAX_QUARANTINE_DEATHS,
    Compact,
    End,
    Reflect,
    Think,
    TurnFacts,
    Wait,
    decide,
)
from brainq.engine.turn.reflection import ThinkingManager

TURN = "t-1"
ALWAYS = ThinkingManager(ThinkLevel.HIGH)


def facts(**given: Any) -> TurnFacts:
    """A turn between its steps 2 and 3 of 6, which a coordinator is to advance."""
    return replace(TurnFacts(Awaits.COORDINATOR, remaining_ms=10_000, step=2, steps_max=6), **given)


def after_a_failed_call(**given: Any) -> TurnFacts:
    return facts(failed_calls=1, **given)


def ended(decision: object) -> tuple[Ending, StopReason]:
    assert isinstance(decision, End)
    return decision.ending, decision.stop_reason


def test_the_next_step_is_thought_about() -> None:
    assert decide(facts()) == Think("step 3 of 6 is next")


def test_the_last_step_is_one_that_may_be_taken() -> None:
    assert isinstance(decide(facts(step=5)), Think)
    assert ended(decide(facts(step=6))) == (Ending.COMPLETED, StopReason.MAX_STEPS)


def test_the_instant_of_the_deadline_is_past_it() -> None:
    assert isinstance(decide(facts(remaining_ms=1)), Think)
    assert ended(decide(facts(remaining_ms=0))) == (Ending.TIMED_OUT, StopReason.DEADLINE)


@pytest.mark.parametrize("awaited", [Awaits.CALLS, Awaits.PEOPLE, Awaits.OUTSIDE, Awaits.FINALIZER])
def test_it_waits_for_whoever_is_to_act(awaited: Awaits) -> None:
    assert decide(facts(awaits=awaited)) == Wait(f"it waits for {awaited}")


def test_a_cancel_ends_it_in_its_own_words_whatever_else_is_true() -> None:
    decision = decide(
        facts(cancel=True, cancel_reason="never mind", remaining_ms=-39_000, awaits=Awaits.PEOPLE, step=6)
    )
    assert ended(decision) == (Ending.CANCELLED, StopReason.CANCELLED)
    assert isinstance(decision, End)
    assert decision.error == "never mind"


def test_a_deadline_ends_it_also_while_it_waits() -> None:
    assert ended(decide(facts(awaits=Awaits.CALLS, remaining_ms=-1))) == (Ending.TIMED_OUT, StopReason.DEADLINE)


def test_what_redis_lost_is_said() -> None:
    decision = decide(facts(lost_reason="it had begun to write"))
    assert ended(decision) == (Ending.FAILED, StopReason.LOST)
    assert isinstance(decision, End)
    assert decision.error == "it had begun to write"


def test_lost_workers_end_it_and_not_one_too_early() -> None:
    """Where no death can be told from another, such as where the whole container dies."""
    assert isinstance(decide(facts(lost_attempts=MAX_LOST_WORKERS - 1)), Think)
    decision = decide(facts(lost_attempts=MAX_LOST_WORKERS))
    assert ended(decision) == (Ending.FAILED, StopReason.LOST)
    assert isinstance(decision, End)
    assert str(MAX_LOST_WORKERS) in decision.error


def test_what_kills_processes_that_work_on_it_alone_is_quarantined_and_says_how() -> None:
    assert isinstance(decide(facts(lost_attempts=3, quarantine_deaths=MAX_QUARANTINE_DEATHS - 1)), Think)
    decision = decide(facts(quarantine_deaths=MAX_QUARANTINE_DEATHS, death_reason="was killed by signal 9"))
    assert ended(decision) == (Ending.FAILED, StopReason.LOST)
    assert isinstance(decision, End)
    assert "quarantined" in decision.error
    assert "was killed by signal 9, 2 times" in decision.error


def test_a_compaction_turn_compacts_once_and_asks_nothing() -> None:
    assert isinstance(decide(facts(kind="compact", step=6)), Compact)
    assert decide(facts(kind="compact", compacted=True)) == COMPACTED


def test_a_failed_call_is_reflected_on_once() -> None:
    assert isinstance(decide(after_a_failed_call(), ALWAYS), Reflect)
    assert isinstance(decide(after_a_failed_call(reflected_step=2), ALWAYS), Think)


def test_nothing_is_reflected_on_when_the_level_is_off() -> None:
    assert isinstance(decide(after_a_failed_call()), Think)


def test_limits_go_before_a_reflection() -> None:
    assert ended(decide(after_a_failed_call(step=6), ALWAYS)) == (Ending.COMPLETED, StopReason.MAX_STEPS)


def test_what_is_spent_completes_the_turn_and_says_which() -> None:
    assert {what: ended(end) for what, end in BUDGET_ENDS.items()} == {
        "steps": (Ending.COMPLETED, StopReason.MAX_STEPS),
        "tokens": (Ending.COMPLETED, StopReason.MAX_TOTAL_TOKENS),
        "cost": (Ending.COMPLETED, StopReason.MAX_COST),
    }


def test_every_stop_reason_has_words_of_its_own_but_an_answer() -> None:
    assert set(StopReason) - set(FALLBACK_TEXTS) == {StopReason.ANSWERED}
