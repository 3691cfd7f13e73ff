"""The worst case of a step is reserved before it is asked, in tokens and in money."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from brainq import Brain, Ending, Limits, StopReason, TokenUsage
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.testing import ScriptedProvider, calls, says
from tests.support.pump import Pump

USED = TokenUsage(input_tokens=100, output_tokens=400)
CENT = 0.01  # what the test's price list takes for a token, in and out alike


class Counter:
    """A model that asks for a tool for ever and counts how often it was asked."""

    def __init__(self, used: TokenUsage = USED) -> None:
        self.asked = 0
        self.used = used

    def answer(self, request: ModelRequest) -> ModelReply:
        self.asked += 1
        return calls(("look", {"number": request.step}), usage=self.used) if request.step < 9 else says("done")

    def brain(self, **limits: float) -> Brain:
        brain = Brain(
            "b", ScriptedProvider(rules=self.answer), limits=Limits.model_validate({"max_steps": 9, **limits})
        )

        @brain.tool
        def look(number: int) -> int:
            """Look."""
            return number

        return brain


@pytest.fixture
def price_list(monkeypatch: pytest.MonkeyPatch) -> None:
    def price(provider: str, model: str, usage: TokenUsage) -> float:
        return CENT * usage.total

    monkeypatch.setattr("brainq.app.wiring.machines.cost_usd", price)


def ended(pumps: Callable[..., Pump], model: Counter, **limits: float) -> tuple[Ending, StopReason, int]:
    pump = pumps(model.brain(**limits))
    result = pump.finish(pump.submit("s1", "Look around."))
    return result.ending, result.stop_reason, model.asked


def test_output_counts_to_the_limit_of_tokens(pumps: Callable[..., Pump]) -> None:
    # After two steps 200 tokens went in and 800 came out: of input alone 900 would be left.
    model = Counter()
    assert ended(pumps, model, max_total_tokens=1_100) == (Ending.COMPLETED, StopReason.MAX_TOTAL_TOKENS, 2)


def test_the_reply_s_worst_case_is_reserved(pumps: Callable[..., Pump]) -> None:
    # 500 were used by the first step; a second of at most 1,000 out could pass 1,400, and is not asked.
    model = Counter()
    assert ended(pumps, model, max_total_tokens=1_400, max_output_tokens=1_000) == (
        Ending.COMPLETED,
        StopReason.MAX_TOTAL_TOKENS,
        1,
    )


def test_without_a_bound_on_the_reply_the_overshoot_is_one_step(pumps: Callable[..., Pump]) -> None:
    model = Counter()
    assert ended(pumps, model, max_total_tokens=1_400)[1:] == (StopReason.MAX_TOTAL_TOKENS, 3)


@pytest.mark.usefixtures("price_list")
def test_a_step_s_price_is_reserved_before_it_is_asked(pumps: Callable[..., Pump]) -> None:
    # A step costs 5 dollars and could cost over 10: with 14 the second is not asked.
    model = Counter()
    assert ended(pumps, model, max_cost_usd=14, max_output_tokens=1_000) == (Ending.COMPLETED, StopReason.MAX_COST, 1)


@pytest.mark.usefixtures("price_list")
def test_a_first_step_that_could_cost_too_much_is_never_asked(pumps: Callable[..., Pump]) -> None:
    model = Counter()
    assert ended(pumps, model, max_cost_usd=1, max_output_tokens=1_000) == (Ending.COMPLETED, StopReason.MAX_COST, 0)


@pytest.mark.usefixtures("price_list")
def test_a_turn_whose_bells_all_come_twice_pays_once_and_keeps_its_limit(pumps: Callable[..., Pump]) -> None:
    model = Counter()
    pump = pumps(model.brain(max_cost_usd=26, max_output_tokens=1_000))
    handle = pump.submit("s1", "Look around.")
    while bell := pump.take():
        pump.answer(bell)
        pump.answer(bell)
    result = pump.finish(handle)
    # Each step costs 5 dollars and could cost over 11: after three of them the fourth is not asked.
    assert (result.stop_reason, model.asked) == (StopReason.MAX_COST, 3)
    assert result.cost_usd == pytest.approx(3 * 500 * CENT)  # pyright: ignore[reportUnknownMemberType]
    assert [spend.kind for spend in result.spends] == ["step"] * 3


@pytest.mark.usefixtures("price_list")
def test_counts_that_cannot_be_lift_no_limit_and_are_warned_of(pumps: Callable[..., Pump]) -> None:
    model = Counter(TokenUsage(input_tokens=-1_000_000, output_tokens=-1_000_000))
    pump = pumps(model.brain(max_total_tokens=2_000, max_output_tokens=500))
    result = pump.finish(pump.submit("s1", "Look around."))
    assert (result.stop_reason, model.asked) == (StopReason.MAX_TOTAL_TOKENS, 3)
    assert [spend.output_tokens for spend in result.spends] == [500] * 3, "the worst case takes their place"
    assert all(spend.estimated and spend.input_tokens > 0 for spend in result.spends)
    used = result.input_tokens + result.output_tokens
    assert result.cost_usd == pytest.approx(CENT * used)  # pyright: ignore[reportUnknownMemberType]
    assert "the service did not count the tokens of 3 replies, or not rightly; they are estimated" in result.warnings
