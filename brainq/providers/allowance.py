"""What may still be spent on a model call, held between the requests that it takes."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

from brainq.contracts.usage import Price, TokenUsage, no_price
from brainq.errors import ProviderError

SpentOn = Literal["tokens", "cost"]


class BudgetSpent(ProviderError):
    """Another request could pass the turn's limit: it was not sent. `what` is the limit."""

    def __init__(self, what: SpentOn) -> None:
        limit = "max_cost_usd" if what == "cost" else "max_total_tokens"
        super().__init__(
            f"after requests that broke off, the next one could pass {limit}", kind="spent", retryable=False
        )
        self.what: SpentOn = what


@dataclass(slots=True)
class Allowance:
    """What a turn may still use as its model call begins. The first request was allowed by the turn's budget; each one
    that is lost leaves less for the next.

    tokens, usd   None: no limit
    """

    price: Price = no_price
    tokens: int | None = None
    usd: float | None = None
    _used_tokens: int = 0
    _used_usd: float = 0.0

    @contextmanager
    def here(self) -> Generator[None]:
        """While entered, calls beside the steps that this thread makes are held to it."""
        token = _allowance.set(self)
        try:
            yield
        finally:
            _allowance.reset(token)

    def charge(self, provider: str, model: str, usage: TokenUsage) -> None:
        """A request has used this."""
        self._used_tokens += usage.total
        if self.usd is not None:
            self._used_usd += self.price(provider, model, usage) or 0.0

    def require(self, provider: str, model: str, usage: TokenUsage) -> None:
        """Raise BudgetSpent where a request of this size could pass what is left."""
        if not self._used_tokens:
            return
        if self.tokens is not None and self._used_tokens + usage.total > self.tokens:
            raise BudgetSpent("tokens")
        if self.usd is None:
            return
        if self._used_usd + (self.price(provider, model, usage) or 0.0) > self.usd:
            raise BudgetSpent("cost")


_allowance: ContextVar[Allowance | None] = ContextVar("allowance", default=None)


def allowance_here() -> Allowance:
    """That of whoever asks in this thread; a new one without limits where nobody set one."""
    return _allowance.get() or Allowance()
