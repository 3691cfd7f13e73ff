"""Whole turns over a Fallback: who answered, what it cost, and what readers are told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from brainq import Brain, Effect, Fallback, Limits
from brainq.app.wiring.preflight import check_model
from brainq.contracts.event import EventKind
from brainq.contracts.model import ModelReply, ModelRequest, TokenUsage
from brainq.contracts.status import Ending
from brainq.engine.models import resolve_model
from brainq.engine.models.costs import cost_usd
from brainq.engine.models.scripted import Rules, ScriptedFailure, ScriptedProvider, calls, fails, says
from tests.support.pump import Pump

USED = TokenUsage(input_tokens=1_000, output_tokens=100)


class Service(ScriptedProvider):
    """A scripted model by a name that has a price."""

    def __init__(self, name: str, rules: Rules) -> None:
        super().__init__(rules=rules, name=name, auxiliary=rules)


def down(request: ModelRequest) -> ScriptedFailure:
    return fails("server")


def breaks_off(request: ModelRequest) -> ScriptedFailure:
    return fails("server", after_text="I think ")


def looks(request: ModelRequest) -> ModelReply:
    if request.step == 1:
        return calls(("look", {}), usage=USED)
    return says("Pears.", usage=USED)


@pytest.fixture
def made(pumps: Callable[..., Pump], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Pump]:
    def make(first: Rules, second: Rules = looks) -> Pump:
        brain = Brain("shop", Fallback([Service("gpt-4.1", first), Service("gpt-4.1-mini", second)], rest_s=60))

        @brain.tool(effect=Effect.READ_ONLY)
        def look() -> str:  # pyright: ignore[reportUnusedFunction]
            "Look."
            return "pears"

        return pumps(brain)

    return make


def test_a_turn_goes_on_with_the_next_model(made: Callable[..., Pump]) -> None:
    pump = made(down)
    handle = pump.submit("s1", "What is there?")
    result = pump.finish(handle)
    assert (result.ending, result.text) == (Ending.COMPLETED, "Pears.")
    assert [spend.model for spend in result.spends] == ["gpt-4.1-mini", "gpt-4.1-mini"]
    told = [event.data for event in handle.events() if event.kind is EventKind.STEP_RETRIED]
    # The second step does not try the first model again: it rests.
    assert told == [{"step": 1, "attempt": 1, "kind": "server", "wait_ms": 0, "model": "gpt-4.1-mini"}]


def test_a_reply_that_broke_off_is_begun_again_by_the_next_model(made: Callable[..., Pump]) -> None:
    pump = made(breaks_off)
    handle = pump.submit("s1", "What is there?")
    result = pump.finish(handle)
    assert (result.ending, result.text) == (Ending.COMPLETED, "Pears.")
    kinds = [(spend.kind, spend.model) for spend in result.spends]
    assert kinds == [("lost", "gpt-4.1"), ("step", "gpt-4.1-mini"), ("step", "gpt-4.1-mini")]


def test_the_price_is_that_of_who_answered_and_the_worst_case_that_of_the_dearest(
    pumps: Callable[..., Pump], monkeypatch: pytest.MonkeyPatch
) -> None:
    dear, cheap = cost_usd("openai", "gpt-4.1", USED), cost_usd("openai", "gpt-4.1-mini", USED)
    assert dear is not None
    assert cheap is not None
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    provider, _ = resolve_model("openai:gpt-4.1")

    def generate_stream(request: ModelRequest) -> object:
        chosen = down if request.model == "gpt-4.1" else looks
        return ScriptedProvider(rules=chosen).generate_stream(request)

    monkeypatch.setattr(provider, "generate_stream", generate_stream)
    brain = Brain("shop", Fallback(["openai:gpt-4.1", "openai:gpt-4.1-mini"]), limits=Limits(max_output_tokens=10_000))
    pump = pumps(brain)
    handle = pump.submit("s1", "What is there?", limits={"max_steps": 1})
    result = pump.finish(handle)
    assert [(spend.model, spend.cost_usd) for spend in result.spends] == [("gpt-4.1-mini", pytest.approx(cheap))]
    # 10,000 tokens of output cost 0.08 dollars at the dearest one: too much for this turn.
    refused = pump.finish(pump.submit("s2", "What is there?", limits={"max_cost_usd": 0.05}))
    assert refused.stop_reason.value == "max_cost"
    assert refused.spends == ()


def test_all_its_members_are_looked_at_before_a_worker_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    check = check_model(Fallback(["openai:gpt-4.1", "anthropic:claude-x"]))
    assert (check.level, check.remedy) == ("FAIL", "set ANTHROPIC_API_KEY")
    assert "anthropic:claude-x: no API key" in check.said
    check = check_model(Fallback(["openai:gpt-4.1", "openai:gpt-4.1-mini"]))
    assert (check.level, check.said) == ("ok", "fallback of openai:gpt-4.1, openai:gpt-4.1-mini")
