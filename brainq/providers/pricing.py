"""What a reply cost, from the price list of genai-prices (extra `brainq[costs]`)."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from brainq.contracts.usage import TokenUsage

MAX_REMEMBERED = 10_000
_LISTED_AS = {"openai-responses": "openai", "bedrock": "aws", "google-cloud": "google", "xai": "x-ai"}
_unknown: set[tuple[str, str]] = set()


def cost_usd(provider: str, model: str, usage: TokenUsage) -> float | None:
    """US dollars for `usage`; None if the model's price is unknown or genai-prices is not installed.

    `provider` is the provider's name (`openai`, `anthropic`, ...). Prices are those the installed list gives
    for today; discounts, batch prices and service tiers are not known to it.
    """
    if provider == "pydantic-ai":  # the model's name begins with its service's
        provider, _, model = model.partition(":")
    if (provider, model) in _unknown:
        return None
    prices = _price_list()
    if prices is None:
        return None
    try:
        found = prices.calc_price(
            prices.Usage(
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cache_read_tokens=usage.cache_read_tokens,
                cache_write_tokens=usage.cache_creation_tokens,
            ),
            model,
            provider_id=_LISTED_AS.get(provider, provider),
        )
    except LookupError:
        if len(_unknown) >= MAX_REMEMBERED:  # names come from requests; do not keep them without limit
            _unknown.clear()
        _unknown.add((provider, model))
        return None
    except ValueError:  # counts that contradict each other, such as more cached tokens than input
        return None
    return float(found.total_price)


@functools.cache
def _price_list() -> Any:
    try:
        return importlib.import_module("genai_prices")
    except ModuleNotFoundError:
        return None
