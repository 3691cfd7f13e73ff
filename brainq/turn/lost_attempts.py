"""What attempts at a step come to that bring no reply, and what their turn may still spend."""

from __future__ import annotations

from dataclasses import dataclass

from brainq.contracts.limits import Limits
from brainq.contracts.model import ModelReply
from brainq.contracts.usage import LostRequest, Price, Spend, TokenUsage
from brainq.contracts.view import TurnView
from brainq.providers.allowance import Allowance
from brainq.providers.bill import Bill
from brainq.providers.spent import first_asked, lost_spends
from brainq.turn.outcome import StepRequest


def allowance_of(view: TurnView, limits: Limits, price: Price) -> Allowance:
    """What the turn may still use."""
    tokens, usd = limits.max_total_tokens, limits.max_cost_usd
    return Allowance(
        price,
        None if tokens is None else tokens - view.usage.total,
        None if usd is None else usd - view.cost_usd,
    )


@dataclass(frozen=True, slots=True)
class AttemptAccount:
    """One attempt's. Fits `contracts.usage.Account`.

    unsent   what it is charged as should its worker die before anybody knows whether its request was sent
    """

    bill: Bill
    step: int
    price: Price
    unsent: Spend

    @classmethod
    def of(cls, asking: StepRequest, step: int, price: Price, allowance: Allowance) -> AttemptAccount:
        setting, begin = asking.setting, asking.begin
        most_output = setting.limits.max_output_tokens or 0
        # As the bills of the steps before have shown the estimate to be off.
        input_tokens = max(begin.estimate, begin.most_tokens - most_output)
        usage = TokenUsage(input_tokens=input_tokens, estimated=True)
        provider, model = first_asked(setting.provider, setting.model)
        is_known = not most_output and begin.most_tokens == input_tokens and provider == setting.provider.name
        usd = begin.most_usd if is_known else price(provider, model, usage)
        unsent = Spend.of("lost", step, model, usage, usd)
        return cls(Bill(input_tokens, allowance), step, price, unsent)

    def so_far(self) -> tuple[Spend, ...]:
        """See Account."""
        return self._spends(self.bill.so_far()) or (self.unsent,)

    def close(self, outcome: ModelReply | BaseException) -> tuple[Spend, ...]:
        """The attempt is over: what it lost."""
        return self._spends(self.bill.close(outcome))

    def _spends(self, lost: tuple[LostRequest, ...]) -> tuple[Spend, ...]:
        return lost_spends("lost", self.step, lost, self.price)
