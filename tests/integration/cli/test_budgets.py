"""`brainq budgets`: setting, listing and raising, as an operator types it."""

from __future__ import annotations

import json

import pytest

from brainq.errors import ExitCode
from tests.support.commands import Brainq


def test_a_budget_is_set_listed_raised_and_left_to_the_settings_again(brainq: Brainq) -> None:
    assert "no budgets" in brainq("budgets", "list").err
    assert (
        "is set to $20.00 per day, then refuse"
        in brainq("budgets", "set", "tenant acme:", "20", "--at-cap", "refuse").err
    )
    assert "raised to $25.00 for this day" in brainq("budgets", "raise", "tenant acme:", "5").err
    page = brainq("budgets", "list").out.splitlines()
    assert page[0].split() == [
        "budget",
        "per",
        "amount",
        "raised",
        "spent",
        "left",
        "used",
        "at",
        "the",
        "cap",
        "until",
    ]
    assert page[1].split()[:9] == ["tenant", "acme:", "day", "25.00", "5.00", "0.00", "25.00", "0", "%"]
    (found,) = json.loads(brainq("budgets", "list", "--json").out)
    assert (found["usd"], found["raised_usd"], found["at_cap"]) == (20, 5, "refuse")
    brainq("budgets", "set", "tenant acme:")
    assert "no budgets" in brainq("budgets", "list").err
    refused = brainq("budgets", "raise", "all", "5")
    assert refused.code == ExitCode.USAGE
    assert "there is no budget of 'all' by day" in refused.err


def test_a_budget_that_does_not_hold_a_model_says_so(brainq: Brainq, monkeypatch: pytest.MonkeyPatch) -> None:
    def unpriced(*_: object) -> tuple[str, ...]:
        return ("mine",)

    monkeypatch.setattr("brainq.client.spending.BudgetVerbs._unpriced_models", unpriced)
    said = brainq("budgets", "set", "all", "5").err
    assert "Budget for all is set to $5.00 per day, then park" in said
    assert "the price of mine is unknown, so this budget does not limit its cost" in " ".join(said.split())
    assert json.loads(brainq("budgets", "set", "all", "5", "--json").out)["unpriced_models"] == ["mine"]
    assert "no price" not in brainq("budgets", "set", "all").err
