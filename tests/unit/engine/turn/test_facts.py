"""What a decision is told of a turn."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from brainq.contracts.conversation import EMPTY_CONVERSATION
from brainq.contracts.message import Message
from brainq.contracts.status import Awaits
from brainq.contracts.turn import TurnRequest
from brainq.engine.turn.decide import TurnFacts, turn_facts
from brainq.runtime.text.estimate import with_sizes
from tests.unit.engine.turn.views import view

TURN = "t-1"
# Each unlike what a turn has by default, so that one that is not passed on is missed.
VIEW = view(
    TurnRequest(turn_id=TURN, session_id="s1", user_message="Tidy up.", kind="review"),
    awaits=Awaits.PEOPLE,
    now_ms=50_000,
    step=2,
    lost_attempts=3,
    cancel=True,
    cancel_reason="never mind",
    history=with_sizes([Message(role="tool", content="no", is_error=True, turn=TURN, step=2)]),
    lost_reason="Redis lost it",
    quarantine_deaths=1,
    died_how="was killed by signal 9",
    reflected_step=1,
    compacted=True,
)


def test_every_fact_is_the_views() -> None:
    facts = turn_facts(VIEW)
    assert facts == TurnFacts(
        awaits=Awaits.PEOPLE,
        remaining_ms=10_000,
        step=2,
        steps_max=6,
        kind="review",
        cancel=True,
        cancel_reason="never mind",
        lost_reason="Redis lost it",
        lost_attempts=3,
        quarantine_deaths=1,
        death_reason="was killed by signal 9",
        failed_calls=1,
        reflected_step=1,
        compacted=True,
    )
    plain: dict[str, Any] = {"awaits": Awaits.COORDINATOR, "remaining_ms": 0, "step": 0, "steps_max": 0}
    nothing = TurnFacts(**plain)
    assert [field.name for field in fields(facts) if getattr(facts, field.name) == getattr(nothing, field.name)] == []


def test_failures_of_other_steps_and_other_turns_are_not_this_steps() -> None:
    (failed,) = VIEW.history.messages
    others = [failed.model_copy(update={"step": 1}), failed.model_copy(update={"turn": "t-0"})]
    assert turn_facts(replace(VIEW, history=with_sizes(others))).failed_calls == 0
    assert turn_facts(replace(VIEW, history=EMPTY_CONVERSATION)).failed_calls == 0
