"""What a model call beside the steps used, as it is charged to the turn."""

from __future__ import annotations

from brainq.contracts.usage import Price, Spend, SpendKind, TokenUsage
from brainq.errors import ProviderError
from brainq.providers.auxiliary import AuxiliaryModel
from brainq.text.estimate import estimate_text

# The service may have worked on these, and bills for it; of the other kinds it made nothing.
MAYBE_BILLED = frozenset({"timeout", "stream", "stalled", "malformed"})


def spend_of(kind: SpendKind, step: int, auxiliary: AuxiliaryModel, usage: TokenUsage, price: Price) -> Spend:
    """What a reply used."""
    return Spend.of(
        kind, step, auxiliary.model, usage, price(auxiliary.provider.name, auxiliary.model, usage)
    )


def spend_of_failure(
    kind: SpendKind, step: int, auxiliary: AuxiliaryModel, failure: Exception, asked: str, price: Price
) -> Spend | None:
    """What a call that failed may have used: its input, estimated; None where the service did nothing."""
    if not isinstance(failure, ProviderError) or failure.kind not in MAYBE_BILLED:
        return None
    usage = TokenUsage(input_tokens=estimate_text(asked))
    return spend_of(kind, step, auxiliary, usage, price)


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
