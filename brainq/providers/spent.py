"""What a model call used, and what it costs at most, as it is charged to the turn."""

from __future__ import annotations

from collections.abc import Sequence

from brainq.contracts.model import ModelReply
from brainq.contracts.usage import LostRequest, Price, Spend, SpendKind, TokenUsage
from brainq.providers.base import Provider, members_of
from brainq.providers.metering import Asked


def spend_of(
    kind: SpendKind, step: int, provider: Provider, model: str, reply: ModelReply, price: Price
) -> Spend:
    """What a reply used, by the name and the price of the model that gave it."""
    by = reply.answered_by
    name, model = (provider.name, model) if by is None else (by.provider, by.model)
    return Spend.of(kind, step, model, reply.usage, price(name, model, reply.usage))


def most_usd(provider: Provider, model: str, usage: TokenUsage, price: Price) -> float | None:
    """US dollars at most, whichever of several models answers; None where the price of one is not known."""
    members = members_of(provider)
    if not members:
        return price(provider.name, model, usage)
    prices = [most_usd(member, name, usage, price) for member, name in members]
    known = [usd for usd in prices if usd is not None]
    return max(known) if len(known) == len(prices) else None


def first_asked(provider: Provider, model: str) -> tuple[str, str]:
    """The provider and the model that are asked first, by their own names."""
    members = members_of(provider)
    return first_asked(*members[0]) if members else (provider.name, model)


def lost_spends(kind: SpendKind, step: int, lost: Sequence[LostRequest], price: Price) -> tuple[Spend, ...]:
    """What requests that broke off are charged as, each by the name and the price of the model it went to."""
    return tuple(
        Spend.of(kind, step, one.model, one.usage, price(one.provider, one.model, one.usage)) for one in lost
    )


def spends_of(kind: SpendKind, calls: Sequence[Asked], price: Price, step: int = 0) -> tuple[Spend, ...]:
    """What metered calls used, and what was lost on their way."""
    found: list[Spend] = []
    for call in calls:
        found += lost_spends(kind, step, call.lost, price)
        if call.reply is not None:
            found.append(spend_of(kind, step, call.provider, call.model, call.reply, price))
    return tuple(found)


def sum_of(spends: Sequence[Spend]) -> Spend | None:
    """Several calls of one kind and step as one; the price is not known where one part's is not."""
    if not spends:
        return None
    usage = TokenUsage()
    costs: list[float | None] = []
    for spend in spends:
        usage += spend.usage
        costs.append(spend.cost_usd)
    known = [cost for cost in costs if cost is not None]
    return spends[-1].model_copy(
        update={
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cache_read_tokens": usage.cache_read_tokens,
            "cache_creation_tokens": usage.cache_creation_tokens,
            "estimated": usage.estimated,
            "cost_usd": sum(known) if len(known) == len(costs) else None,
        }
    )
