"""`brainq doctor` says which models no budget holds: their calls cost money that nothing counts."""

from __future__ import annotations

import pytest

from brainq import Brain
from brainq.cli.doctor import setup
from brainq.cli.doctor.setup import check_prices

priced = Brain("desk", "openai:gpt-4.1-mini")
free = Brain("free", "offline:rules")
own = Brain("own", "openai:my-own-model", auxiliary_model="openai:gpt-4.1-mini")


def test_models_with_a_price_are_well() -> None:
    assert check_prices([priced, free]).level == "ok"


def test_a_model_without_a_price_is_named_with_what_holds_it() -> None:
    found = check_prices([priced, own])
    assert (found.level, found.remedy) == ("warn", "set the limit max_total_tokens for their turns")
    assert found.said == "the price of openai:my-own-model is unknown, so budgets do not limit its cost"


def test_without_the_list_of_prices_no_budget_holds_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: object) -> None:
        return None

    monkeypatch.setattr(setup, "cost_usd", nothing)
    monkeypatch.setattr(setup, "find_spec", nothing)
    found = check_prices([priced])
    assert (found.level, found.remedy) == ("warn", "pip install 'brainq[costs]'")
