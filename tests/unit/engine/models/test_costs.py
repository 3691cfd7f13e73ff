"""What a call is charged as, and what it costs at most."""

from __future__ import annotations

from brainq.contracts.model import AnsweredBy, Spend, TokenUsage
from brainq.engine.models.asking.bill import Allowance, Bill
from brainq.engine.models.asking.fallback import Fallback
from brainq.engine.models.auxiliary import AuxiliaryModel
from brainq.engine.models.costs import first_model, sum_spends, worst_cost_usd
from brainq.engine.models.scripted import ScriptedProvider, fails, says

PRICES = {"cheap": 0.001, "dear": 0.01}


def price(provider: str, model: str, usage: TokenUsage) -> float | None:
    each = PRICES.get(provider)
    return None if each is None else each * usage.total


def named(*names: str) -> list[ScriptedProvider]:
    return [ScriptedProvider([says("Well.")], name=name) for name in names]


USED = TokenUsage(input_tokens=900, output_tokens=100)


def test_the_dearest_that_may_answer_is_the_worst_case() -> None:
    inner = Fallback([*named("cheap", "dear")], name="inner")
    assert worst_cost_usd(named("cheap")[0], "m", USED, price) == 1.0
    assert worst_cost_usd(Fallback([*named("cheap"), inner]), "any", USED, price) == 10.0


def test_no_worst_case_is_known_where_one_that_may_answer_has_no_price() -> None:
    assert worst_cost_usd(Fallback(named("cheap", "unknown")), "any", USED, price) is None
    nested = Fallback([*named("dear"), Fallback(named("unknown", "cheap"), name="inner")])
    assert worst_cost_usd(nested, "any", USED, price) is None


def test_who_answered_for_a_fallback_is_paid_and_named() -> None:
    reply = says("Well.", usage=USED).model_copy(update={"answered_by": AnsweredBy(provider="dear", model="gpt-x")})
    spend = Bill("fallback", "fallback", "step", 2, Allowance(price)).settle(reply).spend
    assert spend == Spend(step=2, model="gpt-x", input_tokens=900, output_tokens=100, cost_usd=10.0)


def test_who_is_asked_first_is_never_the_fallback() -> None:
    inner = Fallback(named("cheap", "dear"), name="inner")
    assert first_model(Fallback([inner, *named("other")]), "fallback") == ("cheap", "cheap")
    assert first_model(named("cheap")[0], "m") == ("cheap", "m")


def test_what_calls_lost_is_charged_beside_their_replies() -> None:
    cut = ScriptedProvider([], auxiliary=lambda _: fails("timeout"), name="dear")
    well = ScriptedProvider([], auxiliary=lambda _: says("Well.", usage=USED), name="cheap")
    allowance = Allowance(price)
    with allowance.activate():
        AuxiliaryModel(Fallback([cut, well]), "fallback").ask("compaction", "Sum up.", "x" * 400, timeout_s=5, step=3)
    assert [(spend.kind, spend.model, spend.estimated, spend.step) for spend in allowance.spends] == [
        ("compaction", "dear", True, 3),
        ("compaction", "cheap", False, 3),
    ]
    lost, reply = allowance.spends
    reserved = lost.input_tokens + lost.output_tokens  # nobody knows what it did: it is charged its longest reply
    assert lost.output_tokens > 0
    assert (lost.cost_usd, reply.cost_usd) == (0.01 * reserved, 1.0)
    total = sum_spends(allowance.spends)
    assert total is not None
    assert (total.input_tokens, total.estimated) == (900 + lost.input_tokens, True)
    assert total.cost_usd == 0.01 * reserved + 1.0
    assert sum_spends(()) is None
