"""BRAINQ_RATES: limits as an operator writes them."""

from __future__ import annotations

import pytest

from brainq.contracts.rate import Rate, RateWait, parse_rates


def test_limits_of_several_models() -> None:
    rates = parse_rates("openai:gpt-5=60/min, 200000 tokens/min; anthropic:*=50/min\nanthropic:claude-3*=none")
    assert rates.for_model("openai:gpt-5") == Rate(60, 200_000)
    assert rates.for_model("anthropic:claude-9") == Rate(50)
    assert rates.for_model("anthropic:claude-3-haiku") is None
    assert rates.for_model("openai:gpt-4") == "unknown"
    assert parse_rates(" ").for_model("openai:gpt-5") == "unknown"


def test_the_longest_name_counts_wherever_it_stands() -> None:
    rates = parse_rates("a:*=1/min; a:model=2 requests/minute; *:model=3/min")
    assert (rates.for_model("a:model"), rates.for_model("a:other"), rates.for_model("b:model")) == (
        Rate(2),
        Rate(1),
        Rate(3),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gpt-5=60/min", "is not a `provider:model`"),
        ("openai:gpt-5", "is not a `provider:model`"),
        ("openai:gpt-5=60", "'60' is not a limit"),
        ("openai:gpt-5=60/h", "'60/h' is not a limit"),
        ("openai:gpt-5=0/min", "is not a limit"),
        ("openai:gpt-5=60/min,70/min", "limits requests twice"),
        ("a:b=1/min;a:b=2/min", "is repeated"),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_rates(text)


def test_a_wait_is_told_for_people() -> None:
    assert RateWait(12, "requests", 60).describe("openai:gpt-5") == "openai:gpt-5: 60 requests a minute"
    assert RateWait(12, "stop").describe("a:b") == "a:b: its service asked to wait"
