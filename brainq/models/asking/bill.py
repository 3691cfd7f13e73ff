"""The bill of one model call: what its requests come to, also those that broke off, and what it may still spend."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

from brainq.contracts.model import (
    LostRequest,
    ModelChunk,
    ModelReply,
    ModelRequest,
    Price,
    Spend,
    TokenUsage,
    unknown_price,
)
from brainq.errors import ProviderError
from brainq.models.costs import lost_spends
from brainq.text.estimate import StreamedTokens, estimate_request

BudgetName = Literal["tokens", "cost"]


class BudgetExhausted(ProviderError):
    """Another request could pass the turn's limit: it was not sent. `what` is the limit."""

    def __init__(self, what: BudgetName) -> None:
        limit = "max_cost_usd" if what == "cost" else "max_total_tokens"
        super().__init__(
            f"after requests that broke off, the next one could pass {limit}", kind="spent", retryable=False
        )
        self.what: BudgetName = what


@dataclass(slots=True)
class Allowance:
    """What a turn may still use as its model call begins. The first request was allowed by the turn's budget; each one
    that is lost leaves less for the next.

    tokens, usd   None: no limit
    """

    price: Price = unknown_price
    tokens: int | None = None
    usd: float | None = None
    _used_tokens: int = 0
    _used_usd: float = 0.0

    @contextmanager
    def activate(self) -> Generator[None]:
        """While entered, auxiliary calls of this thread are held to it."""
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
        """Raise BudgetExhausted where a request of this size could pass what is left."""
        if not self._used_tokens:
            return
        if self.tokens is not None and self._used_tokens + usage.total > self.tokens:
            raise BudgetExhausted("tokens")
        if self.usd is None:
            return
        if self._used_usd + (self.price(provider, model, usage) or 0.0) > self.usd:
            raise BudgetExhausted("cost")


_allowance: ContextVar[Allowance | None] = ContextVar("allowance", default=None)


def current_allowance() -> Allowance:
    """This thread's allowance; a new one without limits where none is active."""
    return _allowance.get() or Allowance()


# What the requests of one model call come to, also those whose answers broke off.
#
# A caller of models opens a Bill (`Bill.activate`). Each request is entered by its RatePermit, so that retries inside a
# provider, and the members of a Fallback, are counted one by one and by their own names.

# The service may have worked on these, and bills them even without an answer.
POSSIBLY_BILLED_KINDS = frozenset({"timeout", "stream", "stalled", "malformed"})
# So the service answers what it does not work on.
UNBILLED_KINDS = frozenset({"rate_limited", "quota", "server", "refused", "too_long"})
NO_USAGE = TokenUsage()


@dataclass(eq=False)
class BilledRequest:
    """What is known of one request to a service: who is asked, and what it has used.

    estimate    tokens of its input, as they were thought to be
    has_begun   the service has begun to answer
    is_whole    its reply was counted by the service
    is_over     it may be billed, and nothing more comes of it
    has_failed  it brought no reply
    """

    provider: str
    model: str
    estimate: int = field(default=0, init=False)
    has_begun: bool = field(default=False, init=False)
    is_over: bool = field(default=False, init=False)
    has_failed: bool = field(default=False, init=False)
    is_whole: bool = field(default=False, init=False)
    _reported: TokenUsage = field(default=NO_USAGE, init=False)
    _written: StreamedTokens = field(default_factory=StreamedTokens, init=False)

    def add_chunk(self, chunk: ModelChunk) -> None:
        """A part of the reply came."""
        if chunk.text:
            self._written.add_text(chunk.text)
        if chunk.reasoning:
            self._written.add_text(chunk.reasoning)
        if chunk.arguments:
            self._written.add_arguments(chunk.arguments)

    def add_usage(self, usage: TokenUsage) -> None:
        """The service reported usage so far, in a stream that goes on."""
        self.has_begun = True
        self._reported = usage

    def begin_again(self) -> None:
        """It failed, and is sent once more: nothing is known of the new try."""
        self.has_begun, self._reported, self._written = False, NO_USAGE, StreamedTokens()

    def complete(self, usage: TokenUsage) -> None:
        """The reply is whole, and this is what it used."""
        self._reported, self.is_whole, self.has_begun = usage, True, True

    @property
    def has_output(self) -> bool:
        """Whether the service has shown that it works on it."""
        return self._reported.total > 0 or self._written.tokens > 0

    def usage(self) -> TokenUsage:
        """What it has used: what was reported, and estimates of the rest."""
        if self.is_whole:
            return self._reported
        return self._reported.model_copy(
            update={
                "input_tokens": self._reported.input_tokens or self.estimate,
                "output_tokens": max(self._reported.output_tokens, self._written.tokens),
                "estimated": True,
            }
        )

    def may_be_billed(self, failure: BaseException) -> bool:
        """Whether its service may bill it though it failed so."""
        kind = failure.kind if isinstance(failure, ProviderError) else ""
        if self.has_output:
            return True
        return kind not in UNBILLED_KINDS if self.has_begun else kind in POSSIBLY_BILLED_KINDS

    def as_lost(self) -> LostRequest:
        return LostRequest(provider=self.provider, model=self.model, usage=self.usage())


@dataclass(slots=True)
class Bill:
    """The requests of one model call, in the order they were sent.

    input_tokens   what its input is thought to be billed as; None: as it is estimated
    allowance      what may be spent on it
    step           the turn's step that the call is an attempt at
    unsent         what an attempt is charged as should its worker die before anybody knows whether a request was sent
    """

    input_tokens: int | None = None
    allowance: Allowance = field(default_factory=Allowance)
    step: int = 0
    unsent: Spend | None = None
    _requests: list[BilledRequest] = field(default_factory=list[BilledRequest])
    _lost_tries: list[LostRequest] = field(default_factory=list[LostRequest])

    @contextmanager
    def activate(self) -> Generator[Bill]:
        """While entered, all that this thread asks of models is entered here."""
        token = _bill.set(self)
        try:
            yield self
        finally:
            _bill.reset(token)

    def require(self, sent: BilledRequest, request: ModelRequest) -> None:
        """Raise BudgetExhausted where another request could pass what is left, after others were lost."""
        sent.estimate = estimate_request(request) if self.input_tokens is None else self.input_tokens
        usage = TokenUsage(input_tokens=sent.estimate, output_tokens=request.max_output_tokens or 0)
        self.allowance.require(sent.provider, sent.model, usage)

    def add(self, sent: BilledRequest) -> None:
        """The request goes out."""
        self._requests.append(sent)

    def add_lost_try(self, sent: BilledRequest) -> None:
        """A try of it may be billed, and it is sent once more."""
        self._lost_tries.append(sent.as_lost())
        self.allowance.charge(sent.provider, sent.model, sent.usage())

    def end(self, request: BilledRequest, is_billed: bool) -> None:
        """A request is over. Of one that brought a reply the usage comes afterwards."""
        if request.is_over or request not in self._requests:
            return
        if not is_billed:
            self._requests.remove(request)
            return
        request.is_over = True
        self.allowance.charge(request.provider, request.model, request.usage())

    def close(self, outcome: ModelReply | BaseException) -> tuple[LostRequest, ...]:
        """The call is over: what it lost. The request that brought the reply is not a loss."""
        if isinstance(outcome, ModelReply) and self._requests and not self._requests[-1].has_failed:
            self._requests.pop()
        for request in tuple(self._requests):  # of a provider that did not say what became of them
            is_billed = request.has_begun
            if isinstance(outcome, BaseException):
                is_billed = request.may_be_billed(outcome)
            self.end(request, is_billed)
        return self.so_far()

    def spends_at_end(self, outcome: ModelReply | BaseException) -> tuple[Spend, ...]:
        """As `close`, of an attempt at a step: what it lost, as it is charged."""
        return lost_spends("lost", self.step, self.close(outcome), self.allowance.price)

    def spends_so_far(self) -> tuple[Spend, ...]:
        """The spends of an attempt should it end here. Any thread may ask."""
        lost = lost_spends("lost", self.step, self.so_far(), self.allowance.price)
        return lost or (() if self.unsent is None else (self.unsent,))

    def so_far(self) -> tuple[LostRequest, ...]:
        """What it would have lost if it broke off now. Any thread may ask."""
        return (*self._lost_tries, *(request.as_lost() for request in tuple(self._requests)))


_bill: ContextVar[Bill | None] = ContextVar("bill", default=None)


def current_bill() -> Bill | None:
    """This thread's active Bill."""
    return _bill.get()
