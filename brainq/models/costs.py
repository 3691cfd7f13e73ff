"""Costs of model calls: prices, what a call used and costs at most, and a record of the calls beside a turn's steps."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from brainq.contracts.model import LostRequest, ModelReply, Price, Spend, SpendKind, TokenUsage
from brainq.models.providers import Provider, members_of

MAX_UNKNOWN_MODELS = 10_000
_PRICE_LIST_NAMES = {"openai-responses": "openai", "bedrock": "aws", "google-cloud": "google", "xai": "x-ai"}
_unknown_models: set[tuple[str, str]] = set()
_call_record: ContextVar[list[AuxiliaryCall] | None] = ContextVar("brainq_meter", default=None)


def cost_usd(provider: str, model: str, usage: TokenUsage) -> float | None:
    """US dollars for `usage`; None if the model's price is unknown or genai-prices is not installed.

    `provider` is the provider's name (`openai`, `anthropic`, ...). Prices are those the installed list gives
    for today; discounts, batch prices and service tiers are not known to it.
    """
    if provider == "pydantic-ai":  # the model's name begins with its service's
        provider, _, model = model.partition(":")
    if (provider, model) in _unknown_models:
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
            provider_id=_PRICE_LIST_NAMES.get(provider, provider),
        )
    except LookupError:
        if len(_unknown_models) >= MAX_UNKNOWN_MODELS:  # names come from requests; do not keep them without limit
            _unknown_models.clear()
        _unknown_models.add((provider, model))
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


@dataclass(frozen=True, slots=True)
class AuxiliaryCall:
    """One call: its model, the reply (None: it failed), and requests for it that broke off."""

    provider: Provider
    model: str
    reply: ModelReply | None
    lost: tuple[LostRequest, ...] = ()


@contextmanager
def record_calls() -> Generator[list[AuxiliaryCall]]:
    """The calls of all AuxiliaryModels made inside, also in threads that `call_within` starts, as they come back."""
    calls: list[AuxiliaryCall] = []
    token = _call_record.set(calls)
    try:
        yield calls
    finally:
        _call_record.reset(token)


def record_call(call: AuxiliaryCall) -> None:
    """Record the call, inside `record_calls`."""
    meter = _call_record.get()
    if meter is not None:
        meter.append(call)


def reply_spend(kind: SpendKind, step: int, provider: Provider, model: str, reply: ModelReply, price: Price) -> Spend:
    """What a reply used, by the name and the price of the model that gave it."""
    by = reply.answered_by
    name, model = (provider.name, model) if by is None else (by.provider, by.model)
    return Spend.from_usage(kind, step, model, reply.usage, price(name, model, reply.usage))


def worst_cost_usd(provider: Provider, model: str, usage: TokenUsage, price: Price) -> float | None:
    """US dollars at most, whichever of several models answers; None where the price of one is not known."""
    members = members_of(provider)
    if not members:
        return price(provider.name, model, usage)
    prices = [worst_cost_usd(member, name, usage, price) for member, name in members]
    known = [usd for usd in prices if usd is not None]
    return max(known) if len(known) == len(prices) else None


def first_model(provider: Provider, model: str) -> tuple[str, str]:
    """The provider and the model that are asked first, by their own names."""
    members = members_of(provider)
    return first_model(*members[0]) if members else (provider.name, model)


def lost_spends(kind: SpendKind, step: int, lost: Sequence[LostRequest], price: Price) -> tuple[Spend, ...]:
    """What requests that broke off are charged as, each by the name and the price of the model it went to."""
    return tuple(
        Spend.from_usage(kind, step, one.model, one.usage, price(one.provider, one.model, one.usage)) for one in lost
    )


def call_spends(kind: SpendKind, calls: Sequence[AuxiliaryCall], price: Price, step: int = 0) -> tuple[Spend, ...]:
    """What metered calls used, and what was lost on their way."""
    found: list[Spend] = []
    for call in calls:
        found += lost_spends(kind, step, call.lost, price)
        if call.reply is not None:
            found.append(reply_spend(kind, step, call.provider, call.model, call.reply, price))
    return tuple(found)


def sum_spends(spends: Sequence[Spend]) -> Spend | None:
    """Several calls of one kind and step as one; the price is not known where one part's is not."""
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
