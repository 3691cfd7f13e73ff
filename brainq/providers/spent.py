"""What a model call used, and what it costs at most, as it is charged to the turn."""

from __future__ import annotations

from collections.abc import Sequence

from brainq.contracts.model import ModelReply
from brainq.contracts.usage import Price, Spend, SpendKind, TokenUsage
from brainq.errors import ProviderError
from brainq.providers.auxiliary import AuxiliaryModel
from brainq.providers.base import Provider, members_of
from brainq.providers.metering import Asked
from brainq.text.estimate import estimate_text

# The service may have worked on these, and bills for it; of the other kinds it made nothing.
MAYBE_BILLED = frozenset({"timeout", "stream", "stalled", "malformed"})


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


def spends_of(kind: SpendKind, calls: Sequence[Asked], price: Price) -> tuple[Spend, ...]:
    """What calls used that were metered beside no step."""
    found = [
        spend_of(kind, 0, call.provider, call.model, call.outcome, price)
        if isinstance(call.outcome, ModelReply)
        else spend_of_failure(
            kind, 0, AuxiliaryModel(call.provider, call.model), call.outcome, call.text, price
        )
        for call in calls
    ]
    return tuple(spend for spend in found if spend is not None)


def spend_of_failure(
    kind: SpendKind, step: int, auxiliary: AuxiliaryModel, failure: Exception, asked: str, price: Price
) -> Spend | None:
    """What a call that failed may have used: its input, estimated; None where the service did nothing."""
    if not isinstance(failure, ProviderError) or failure.kind not in MAYBE_BILLED:
        return None
    usage = TokenUsage(input_tokens=estimate_text(asked))
    most = most_usd(auxiliary.provider, auxiliary.model, usage, price)
    return Spend.of(kind, step, auxiliary.model, usage, most)


def sum_of(spends: list[Spend]) -> Spend | None:
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
