"""A turn of 200 steps stays within the model's context at every step."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from brainq.contracts.message import Message
from brainq.engine.models.asking.bill import Allowance
from brainq.engine.turn.prompt.compaction import ContextCompactor, ContextTracker, should_compact
from brainq.engine.turn.prompt.compaction_cut import newest_user_message
from brainq.engine.turn.prompt.request_messages import TurnPreparation, TurnPreparer
from brainq.runtime.text.estimate import estimate_messages, with_sizes
from tests.unit.engine.turn.conversations import TURN, Rules, asked, asks, free, request, result, says_always, user

STEPS = 200
TODAY = datetime(2026, 3, 4, tzinfo=UTC)
TOOLS_ESTIMATE = 300


def real_tokens(messages: tuple[Message, ...], density: float) -> int:
    """What a model that packs text more or less tightly than the estimate would count."""
    return int(density * (estimate_messages(messages) + TOOLS_ESTIMATE))


def prepare(history: list[Message], window: int) -> TurnPreparation:
    return TurnPreparer().prepare(
        request(),
        with_sizes(history),
        system_prompt="Be good.",
        provider="p",
        model="m",
        today=TODAY,
        max_context_tokens=window,
        memory_text="likes tea",
        pack_json='{"facts":["Tea is at 4."]}',
        tools_estimate=TOOLS_ESTIMATE,
    )


def one_step(step: int, chance: random.Random, most_chars: int) -> list[Message]:
    """A reply with one to four calls, and results of which most are short and some very long."""
    tools = ["look", "search", "look", "book"][: chance.randint(1, 4)]
    sizes = [int(most_chars ** chance.random()) for _ in tools]
    return [
        asks(step, *tools, text="Let me see.", at=f"page {step}"),
        *(result(step, index, "x" * size, tool) for index, (tool, size) in enumerate(zip(tools, sizes, strict=True))),
    ]


@pytest.mark.parametrize("rules", [says_always("It looked at many pages. " * 40), None], ids=["model", "rules"])
@pytest.mark.parametrize(
    ("seed", "window", "density", "most_chars"),
    [(1, 8_000, 1.0, 20_000), (2, 8_000, 1.6, 20_000), (3, 32_000, 0.7, 250_000), (4, 32_000, 1.3, 250_000)],
)
def test_two_hundred_steps(seed: int, rules: Rules | None, window: int, density: float, most_chars: int) -> None:
    chance = random.Random(seed)
    compactor = ContextCompactor(asked(rules), Allowance(free), lambda tool: tool == "book")
    history = [user("before", "t-0"), user("the question")]
    known, tried_at, compactions, longest = (0, 0), 0, 0, 0
    for step in range(1, STEPS + 1):
        prepared = prepare(history, window)
        tracker = ContextTracker.from_state(window, known)
        now = tracker.tokens(prepared.full_estimate)
        if should_compact(now, window, True, tried_at, len(history)):
            made = compactor.compact(
                history, turn_id=TURN, tracker=tracker, fixed_estimate=prepared.fixed_estimate, timeout_s=100, step=step
            )
            tried_at = now if made is None else made.tokens_after
            if made is not None:
                compactions += 1
                history = list(made.applied(history))
                prepared = prepare(history, window)
                assert tracker.tokens(prepared.full_estimate) == made.tokens_after
        asked_with = real_tokens(prepared.messages, density)
        assert asked_with <= window, f"step {step} asks with {asked_with} tokens"
        assert user("the question") in prepared.messages
        if step > 1:
            assert prepared.messages[-1].step == step - 1, "the newest results are there"
        known = (asked_with, prepared.estimate + TOOLS_ESTIMATE)
        longest = max(longest, len(history))
        history += one_step(step, chance, most_chars)
    assert newest_user_message(history) is not None
    assert compactions >= 3
    assert longest < 400
