"""Tokens, as providers count them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from brainq.contracts.base import Wire

SpendKind = Literal["step", "lost", "reflection", "compaction", "child", "memory", "judge"]


class TokenUsage(Wire):
    """Token counts of one reply, or a sum of several. `input_tokens` includes the cached ones.

    estimated   some of it was not counted by the service
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_creation_tokens: int = 0
    estimated: bool = False

    @property
    def total(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_creation_tokens=self.cache_creation_tokens + other.cache_creation_tokens,
            estimated=self.estimated or other.estimated,
        )


Price = Callable[[str, str, TokenUsage], float | None]
"""From a provider, a model and what it used to US dollars; None where the price is not known."""


def no_price(provider: str, model: str, usage: TokenUsage) -> float | None:
    """The Price of who knows none."""
    return None


class Spend(Wire):
    """What one model call of a turn used.

    kind       `step`; `lost`: a request that broke off; `child`: all of a child turn; or a call beside the steps.
               `memory` and `judge` come after the result: SQL has them
    model      the one that was asked, by its own name: never that of a `Fallback`
    cost_usd   None where the price of the model is not known
    estimated  the service did not count the tokens, or not all of them. So it is with what broke off: what the stream
               had told of usage is taken, else the input is estimated, and output from what had been streamed
    """

    kind: SpendKind = "step"
    step: int
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_creation_tokens: int = 0
    cost_usd: float | None = None
    estimated: bool = False

    @classmethod
    def of(cls, kind: SpendKind, step: int, model: str, usage: TokenUsage, cost_usd: float | None) -> Spend:
        return cls(
            kind=kind,
            step=step,
            model=model,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cache_creation_tokens=usage.cache_creation_tokens,
            cost_usd=cost_usd,
            estimated=usage.estimated,
        )

    @property
    def usage(self) -> TokenUsage:
        return TokenUsage(
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cache_read_tokens=self.cache_read_tokens,
            cache_creation_tokens=self.cache_creation_tokens,
            estimated=self.estimated,
        )


class LostRequest(Wire):
    """A request that broke off and may be billed: who was asked, and what it is thought to have used."""

    provider: str
    model: str
    usage: TokenUsage


class Account(Protocol):
    """What a model call that is under way has come to."""

    def so_far(self) -> Sequence[Spend]:
        """Its spends should it end here. Another thread than that which asks the model may call it."""
        ...
