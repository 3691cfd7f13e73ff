"""What a turn does next, for every reason it can have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest

from brainq.contracts.conversation import EMPTY
from brainq.contracts.message import Message
from brainq.contracts.reflection import ThinkLevel
from brainq.contracts.status import Awaits, Ending, StopReason, TurnState
from brainq.contracts.turn import TurnRequest
from brainq.contracts.usage import TokenUsage
from brainq.contracts.view import TurnView
from brainq.text.estimate import with_sizes
from brainq.turn.decide import (
    COMPACTED,
    FALLBACK_TEXTS,
    MOST_DEATHS_ALONE,
    MOST_LOST,
    SPENT,
    Compact,
    End,
    Reflect,
    Think,
    Wait,
    decide,
)
from brainq.turn.thinking import ThinkingManager

TURN = "t-1"
ALWAYS = ThinkingManager(ThinkLevel.HIGH)


def view(kind: Literal["chat", "review", "compact"] = "chat", **given: Any) -> TurnView:
    """A turn between its steps 2 and 3 of 6, which a coordinator is to advance."""
    values: dict[str, Any] = {
        "request": TurnRequest(turn_id=TURN, session_id="s1", user_message="Tidy up.", kind=kind),
        "state": TurnState.ACTIVE,
        "awaits": Awaits.COORDINATOR,
        "now_ms": 50_000,
        "deadline_ms": 60_000,
        "created_at_ms": 0,
        "active_at_ms": 0,
        "step": 2,
        "thinking_step": 2,
        "steps_used": 2,
        "steps_max": 6,
        "lost_attempts": 0,
        "cancel": False,
        "cancel_reason": "",
        "begun": True,
        "turn_number": 1,
        "write_epoch": 0,
        "succeeded": {},
        "blocked": frozenset(),
        "history": EMPTY,
        "usage": TokenUsage(),
        "cost_usd": 0,
        "open_calls": False,
    }
    return TurnView(**values | given)


def after_a_failed_call(**given: Any) -> TurnView:
    failed = Message(role="tool", content="no", call_id="c2-0", is_error=True, turn=TURN, step=2)
    return view(history=with_sizes([failed]), **given)


def ended(decision: object) -> tuple[Ending, StopReason]:
    assert isinstance(decision, End)
    return decision.ending, decision.stop_reason


def test_the_next_step_is_thought_about() -> None:
    assert decide(view()) == Think("step 3 of 6 is next")


def test_the_last_step_is_one_that_may_be_taken() -> None:
    assert isinstance(decide(view(step=5)), Think)
    assert ended(decide(view(step=6))) == (Ending.COMPLETED, StopReason.MAX_STEPS)


def test_the_instant_of_the_deadline_is_past_it() -> None:
    assert isinstance(decide(view(now_ms=59_999)), Think)
    assert ended(decide(view(now_ms=60_000))) == (Ending.TIMED_OUT, StopReason.DEADLINE)


@pytest.mark.parametrize("awaited", [Awaits.CALLS, Awaits.PEOPLE, Awaits.OUTSIDE, Awaits.FINALIZER])
def test_it_waits_for_whoever_is_to_act(awaited: Awaits) -> None:
    assert decide(view(awaits=awaited)) == Wait(f"it waits for {awaited}")


def test_a_cancel_ends_it_in_its_own_words_whatever_else_is_true() -> None:
    decision = decide(
        view(cancel=True, cancel_reason="never mind", now_ms=99_000, awaits=Awaits.PEOPLE, step=6)
    )
    assert ended(decision) == (Ending.CANCELLED, StopReason.CANCELLED)
    assert isinstance(decision, End)
    assert decision.error == "never mind"


def test_a_deadline_ends_it_also_while_it_waits() -> None:
    assert ended(decide(view(awaits=Awaits.CALLS, now_ms=60_001))) == (Ending.TIMED_OUT, StopReason.DEADLINE)


def test_what_redis_lost_is_said() -> None:
    decision = decide(view(lost_reason="it had begun to write"))
    assert ended(decision) == (Ending.FAILED, StopReason.LOST)
    assert isinstance(decision, End)
    assert decision.error == "it had begun to write"


def test_lost_workers_end_it_and_not_one_too_early() -> None:
    """Where no death can be told from another, such as where the whole container dies."""
    assert isinstance(decide(view(lost_attempts=MOST_LOST - 1)), Think)
    decision = decide(view(lost_attempts=MOST_LOST))
    assert ended(decision) == (Ending.FAILED, StopReason.LOST)
    assert isinstance(decision, End)
    assert str(MOST_LOST) in decision.error


def test_what_kills_processes_that_work_on_it_alone_is_quarantined_and_says_how() -> None:
    assert isinstance(decide(view(lost_attempts=3, died_alone=MOST_DEATHS_ALONE - 1)), Think)
    decision = decide(view(died_alone=MOST_DEATHS_ALONE, died_how="was killed by signal 9"))
    assert ended(decision) == (Ending.FAILED, StopReason.LOST)
    assert isinstance(decision, End)
    assert "quarantined" in decision.error
    assert "was killed by signal 9, 2 times" in decision.error


def test_a_compaction_turn_compacts_once_and_asks_nothing() -> None:
    assert isinstance(decide(view("compact", step=6)), Compact)
    assert decide(view("compact", compacted=True)) == COMPACTED


def test_a_failed_call_is_reflected_on_once() -> None:
    assert isinstance(decide(after_a_failed_call(), ALWAYS), Reflect)
    assert isinstance(decide(after_a_failed_call(reflected_step=2), ALWAYS), Think)


def test_nothing_is_reflected_on_when_the_level_is_off() -> None:
    assert isinstance(decide(after_a_failed_call()), Think)


def test_limits_go_before_a_reflection() -> None:
    assert ended(decide(after_a_failed_call(step=6), ALWAYS)) == (Ending.COMPLETED, StopReason.MAX_STEPS)


def test_failures_of_other_steps_and_other_turns_are_not_this_steps() -> None:
    mine = after_a_failed_call()
    (failed,) = mine.history.messages
    assert mine.failed_calls == 1
    others = (replace_message(failed, step=1), replace_message(failed, turn="t-0"))
    assert replace(mine, history=with_sizes(others)).failed_calls == 0


def replace_message(message: Message, **changed: Any) -> Message:
    return message.model_copy(update=changed)


def test_what_is_spent_completes_the_turn_and_says_which() -> None:
    assert {what: ended(end) for what, end in SPENT.items()} == {
        "steps": (Ending.COMPLETED, StopReason.MAX_STEPS),
        "tokens": (Ending.COMPLETED, StopReason.MAX_TOTAL_TOKENS),
        "cost": (Ending.COMPLETED, StopReason.MAX_COST),
    }


def test_every_stop_reason_has_words_of_its_own_but_an_answer() -> None:
    assert set(StopReason) - set(FALLBACK_TEXTS) == {StopReason.ANSWERED}
