"""The prices of model calls: their cost, and the most they can cost."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterable, Sequence
from typing import Any

from brainq.contracts.model import Price, Spend, TokenUsage
from brainq.engine.models.providers import Provider, members_of, model_reference, resolve_model
from brainq.errors import BrainqError

MAX_UNKNOWN_MODELS = 10_000
_PRICE_LIST_NAMES = {"openai-responses": "openai", "bedrock": "aws", "google-cloud": "google", "xai": "x-ai"}
_UNPRICED = ("scripted", "offline")  # not worth the fifth of a second that the list takes to import
_unknown_models: set[tuple[str, str]] = set()


def cost_usd(provider: str, model: str, usage: TokenUsage) -> float | None:
    """Return the US dollars for `usage`, or None if the model's price is unknown or genai-prices is not installed.

    Prices are those of the installed list for today. It does not include discounts, batch prices and service tiers.

    provider: the provider's name (`openai`, `anthropic`, ...).
    """
    if provider == "pydantic-ai":  # the model's name begins with its service's name
        provider, _, model = model.partition(":")
    if provider in _UNPRICED or (provider, model) in _unknown_models:
        return None
    prices = _price_list()
    if prices is None:
        return None
    try:
        found = prices.calc_price(
            prices.Usage(
                input_tokens=max(usage.input_tokens, usage.cache_read_tokens + usage.cache_creation_tokens),
                output_tokens=usage.output_tokens,
                cache_read_tokens=usage.cache_read_tokens,
                cache_write_tokens=usage.cache_creation_tokens,
            ),
            model,
            provider_id=_PRICE_LIST_NAMES.get(provider, provider),
        )
    except LookupError:
        if len(_unknown_models) >= MAX_UNKNOWN_MODELS:  # the names come from requests
            _unknown_models.clear()
        _unknown_models.add((provider, model))
        return None
    except ValueError:  # the list cannot separate the cached tokens in these counts: none of them count as cached
        plain = TokenUsage(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
        return cost_usd(provider, model, plain) if plain != usage else None
    return float(found.total_price)


@functools.cache
def _price_list() -> Any:
    try:
        return importlib.import_module("genai_prices")
    except ModuleNotFoundError:
        return None


def worst_cost_usd(provider: Provider, model: str, usage: TokenUsage, price: Price) -> float | None:
    """Return the most US dollars that any of the provider's models may charge, or None if one price is unknown."""
    members = members_of(provider)
    if not members:
        return price(provider.name, model, usage)
    prices = [worst_cost_usd(member, name, usage, price) for member, name in members]
    known = [usd for usd in prices if usd is not None]
    return max(known) if len(known) == len(prices) else None


def unpriced_models(models: Iterable[str | Provider], price: Price = cost_usd) -> set[str]:
    """Return the references of the models whose price is unknown. Their cost counts in no budget.

    Offline models cost nothing. A name without a known provider is left out.
    """
    usage, unknown = TokenUsage(input_tokens=1, output_tokens=1), set[str]()
    for model in models:
        try:
            provider, name = resolve_model(model)
        except BrainqError:
            continue
        if provider.name != "offline" and worst_cost_usd(provider, name, usage, price) is None:
            unknown.add(model_reference(provider, name))
    return unknown


def first_model(provider: Provider, model: str) -> tuple[str, str]:
    """Return the provider and the model that are called first, by their own names."""
    members = members_of(provider)
    return first_model(*members[0]) if members else (provider.name, model)


def sum_spends(spends: Sequence[Spend]) -> Spend | None:
    """Add up several calls of one kind and step. The price is unknown if one part's price is."""
    if not spends:
        return None
    usage = TokenUsage()
    costs: list[float | None] = []
    for spend in spends:
        usage += spend.usage
        costs.append(spend.cost_usd)
    known = [cost for cost in costs if cost is not None]
    last, cost_usd = spends[-1], sum(known) if len(known) == len(costs) else None
    return Spend.from_usage(last.kind, last.step, last.model, usage, cost_usd)
