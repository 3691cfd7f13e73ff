"""The bill of one model call: the cost of its requests, lost ones included, and the amount that it may still spend."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest, Price, Purpose, Spend, TokenUsage
from brainq.engine.models.asking.reply_size import MAX_REPLY_BYTES, ReplyTooLarge, reply_bytes
from brainq.engine.models.costs import cost_usd
from brainq.errors import NOT_SENT, ProviderError
from brainq.runtime.observe.metrics import catalogue as m
from brainq.runtime.observe.metrics.counters import COUNTERS, Counters, Reading
from brainq.runtime.observe.metrics.recording import ERRORS, MODELS
from brainq.runtime.observe.telemetry_names import CHAT
from brainq.runtime.text.estimate import StreamedTokens, estimate_request

BudgetName = Literal["tokens", "cost"]
# The service may have worked on these, and bills them even without an answer.
POSSIBLY_BILLED_KINDS = frozenset({"timeout", "stream", "stalled", "broken", "malformed"})
# Services answer with these when they have not worked on the request.
UNBILLED_KINDS = frozenset(
    {
        *("rate_limited", "over_limit", "quota", "denied", "server", "refused", "filtered", "too_long"),
    }
)
NO_USAGE = TokenUsage()


class BudgetExhausted(ProviderError):
    """The error of a request that was not sent because it could exceed the turn's limit, which `what` names."""

    def __init__(self, what: BudgetName) -> None:
        limit = "max_cost_usd" if what == "cost" else "max_total_tokens"
        super().__init__(
            f"after requests that broke off, another one could exceed {limit}", kind="spent", retryable=False
        )
        self.what: BudgetName = what


@dataclass(slots=True)
class Allowance:
    """The tokens and the money that model calls may still use, and what they have used already.

    The turn's budget allowed the first request. Each request that is lost leaves less for the next one.

    price: the function that prices a request by provider and model.
    tokens, usd: the limits, or None for no limit.
    reply_bytes: the maximum size of one reply.
    spends: the cost of each call in order, including calls in threads that `call_within` starts.
    """

    price: Price = cost_usd
    tokens: int | None = None
    usd: float | None = None
    reply_bytes: int = MAX_REPLY_BYTES
    spends: list[Spend] = field(default_factory=list[Spend])

    @contextmanager
    def activate(self) -> Generator[None]:
        """Apply this allowance to the auxiliary calls of this thread until the context ends."""
        token = _allowance.set(self)
        try:
            yield
        finally:
            _allowance.reset(token)

    def require(self, lost: Sequence[Spend], provider: str, model: str, usage: TokenUsage) -> None:
        """Raise BudgetExhausted if a request of this size could exceed what is left.

        lost: the cost of earlier requests of the same call.
        """
        used = [*self.spends, *lost]
        if not used:
            return
        if self.tokens is not None and sum(spend.usage.total for spend in used) + usage.total > self.tokens:
            raise BudgetExhausted("tokens")
        if self.usd is None:
            return
        if sum(spend.cost_usd or 0.0 for spend in used) + (self.price(provider, model, usage) or 0.0) > self.usd:
            raise BudgetExhausted("cost")


_allowance: ContextVar[Allowance | None] = ContextVar("allowance", default=None)


def current_allowance() -> Allowance:
    """Return this thread's allowance, or a new one without limits if none is active."""
    return _allowance.get() or Allowance()


@dataclass(eq=False)
class BillEntry:
    """One request to a service in the bill: its provider and model, and what it has used.

    estimate: the estimated tokens of its input.
    max_output: the most tokens that its reply may have, or 0 if that is unknown.
    max_bytes: the maximum size of its reply.
    has_begun: whether the service has begun to answer.
    is_whole: whether the service has sent the whole reply and its usage.
    is_over: whether the request has ended and may be billed.
    has_failed: whether it brought no reply.
    """

    provider: str
    model: str
    estimate: int = field(default=0, init=False)
    max_output: int = field(default=0, init=False)
    max_bytes: int = field(default=MAX_REPLY_BYTES, init=False)
    has_begun: bool = field(default=False, init=False)
    is_over: bool = field(default=False, init=False)
    has_failed: bool = field(default=False, init=False)
    is_whole: bool = field(default=False, init=False)
    _reported: TokenUsage = field(default=NO_USAGE, init=False)
    _written: StreamedTokens = field(default_factory=StreamedTokens, init=False)

    def add_chunk(self, chunk: ModelChunk) -> None:
        """Count a part of the reply. Raises ReplyTooLarge once the parts together are too large."""
        if chunk.text:
            self._written.add_text(chunk.text)
        if chunk.reasoning:
            self._written.add_text(chunk.reasoning)
        if chunk.arguments:
            self._written.add_arguments(chunk.arguments)
        if self._written.size > self.max_bytes:
            raise ReplyTooLarge(self.max_bytes)

    def add_unread(self) -> None:
        """Count the largest reply that is allowed, because this reply grew too large before it could be read."""
        self._written.add_up_to(self.max_bytes)

    def add_usage(self, usage: TokenUsage) -> None:
        """Note the usage that the service has reported so far in an open stream."""
        self.has_begun = True
        self._reported = usage

    def begin_again(self) -> None:
        """Reset the entry for another try of the same request."""
        self.has_begun, self._reported, self._written = False, NO_USAGE, StreamedTokens()

    def complete(self, usage: TokenUsage) -> None:
        """Note that the reply is whole, and what it used."""
        self._reported, self.is_whole, self.has_begun, self.is_over = usage, True, True, True

    @property
    def has_output(self) -> bool:
        """Whether the service has shown that it works on the request."""
        return self._reported.total > 0 or self._written.tokens > 0

    def usage(self) -> TokenUsage:
        """Return the usage of the request: what the service has reported, and estimates of the rest.

        If no answer has come, it is not known what the service has done, and the longest reply counts.
        """
        if self.is_whole:
            return self._reported
        unseen = 0 if self.has_begun or self._written.tokens else self.max_output
        return self._reported.model_copy(
            update={
                "input_tokens": self._reported.input_tokens or self.estimate,
                "output_tokens": max(self._reported.output_tokens, self._written.tokens, unseen),
                "estimated": True,
            }
        )

    def worst_usage(self) -> TokenUsage:
        """Return the usage that may be billed if the reader stops here. An open request counts with its longest
        reply."""
        usage = self.usage()
        if self.is_over or usage.output_tokens >= self.max_output:
            return usage
        return usage.model_copy(update={"output_tokens": self.max_output})

    def may_be_billed(self, failure: BaseException) -> bool:
        """Return whether the service may bill the request although it failed this way."""
        kind = failure.kind if isinstance(failure, ProviderError) else ""
        if self.has_output:
            return True
        return kind not in UNBILLED_KINDS if self.has_begun else kind in POSSIBLY_BILLED_KINDS


@dataclass(frozen=True, slots=True)
class ReplyCost:
    """The cost of a reply, and of requests for it that broke off before."""

    spend: Spend
    lost: tuple[Spend, ...] = ()


@dataclass(slots=True)
class Bill:
    """The bill of one model call, with its requests in the order they were sent.

    Each request is entered by its ServiceRequest. So the retries inside a provider, and the members of a Fallback, are
    counted one by one under their own names.

    provider, model: the model that is called, or the model that has answered once there is a reply.
    purpose, step: the purpose of the call, and the turn's step that it belongs to.
    allowance: the limits of the call.
    input_tokens: the expected input tokens, or None if they are to be estimated.
    unsent: the charge of the attempt if its worker dies before it is known whether a request was sent. None once the
        call is over.
    """

    provider: str = ""
    model: str = ""
    purpose: Purpose = "step"
    step: int = 0
    allowance: Allowance = field(default_factory=Allowance)
    input_tokens: int | None = None
    unsent: Spend | None = None
    _requests: list[BillEntry] = field(default_factory=list[BillEntry])
    _lost_tries: list[Spend] = field(default_factory=list[Spend])
    _reply_spend: Spend | None = None

    @contextmanager
    def activate(self) -> Generator[Bill]:
        """Enter all model requests of this thread in this bill until the context ends. The call is then counted by its
        outcome."""
        token, began, failure = _bill.set(self), time.monotonic(), None
        try:
            yield self
        except BaseException as error:
            failure = error
            raise
        finally:
            _bill.reset(token)
            duration_s = time.monotonic() - began
            count_model_call(self.provider, self.model, self.purpose, duration_s, failure or self._reply_spend)

    def require(self, sent: BillEntry, request: ModelRequest) -> None:
        """Raise BudgetExhausted if another request, after those that were lost, could exceed the allowance."""
        sent.estimate = estimate_request(request) if self.input_tokens is None else self.input_tokens
        sent.max_output, sent.max_bytes = request.max_output_tokens or 0, self.allowance.reply_bytes
        usage = TokenUsage(input_tokens=sent.estimate, output_tokens=sent.max_output)
        ended = [self._lost_spend(request) for request in self._requests if request.is_over]
        self.allowance.require([*self._lost_tries, *ended], sent.provider, sent.model, usage)

    def add(self, sent: BillEntry) -> None:
        """Enter a request that is about to be sent."""
        self._requests.append(sent)

    def add_lost_try(self, sent: BillEntry) -> None:
        """Add a failed try that may be billed, of a request that is sent once more."""
        self._lost_tries.append(self._lost_spend(sent))

    def end(self, request: BillEntry, is_billed: bool) -> None:
        """Close the entry of a request. The usage of one that brought a reply is settled afterwards."""
        if request.is_over or request not in self._requests:
            return
        request.is_over = is_billed
        if not is_billed:
            self._requests.remove(request)

    def settle(self, reply: ModelReply) -> ReplyCost:
        """Return the cost of the call once its reply has come, at the price of the model that gave it.

        Raises ReplyTooLarge.
        """
        if reply_bytes(reply) > self.allowance.reply_bytes:
            raise ReplyTooLarge(self.allowance.reply_bytes)
        if self._requests and not self._requests[-1].has_failed:
            self._requests.pop()  # this request brought the reply
        if reply.answered_by is not None:
            self.provider, self.model = reply.answered_by.provider, reply.answered_by.model
        usd = self.allowance.price(self.provider, self.model, reply.usage)
        spend = self._reply_spend = Spend.from_usage(self.purpose, self.step, self.model, reply.usage, usd)
        lost = self.close() if self._requests or self._lost_tries else ()
        self.allowance.spends.append(spend)
        return ReplyCost(spend, lost)

    def close(self, failure: BaseException | None = None) -> tuple[Spend, ...]:
        """Close the bill, and return the cost of requests that produced no usable reply."""
        for request in tuple(self._requests):  # the provider did not report what became of these
            self.end(request, request.has_begun if failure is None else request.may_be_billed(failure))
        self.unsent = None
        lost = (*self._lost_tries, *map(self._lost_spend, self._requests))
        self.allowance.spends += lost
        return lost

    def spends_so_far(self) -> tuple[Spend, ...]:
        """Return the charge of the attempt if its worker dies now. Any thread may call this.

        The service continues with an open request, which counts with its worst case.
        """
        requests = tuple(self._requests)
        lost = (*self._lost_tries, *(self._lost_spend(request, request.worst_usage()) for request in requests))
        if self._reply_spend is not None:
            return (*lost, self._reply_spend.model_copy(update={"kind": "lost"}))
        return lost or (() if self.unsent is None else (self.unsent,))

    def _lost_spend(self, request: BillEntry, usage: TokenUsage | None = None) -> Spend:
        usage, kind = usage or request.usage(), "lost" if self.purpose == "step" else self.purpose
        usd = self.allowance.price(request.provider, request.model, usage)
        return Spend.from_usage(kind, self.step, request.model, usage, usd)


def count_model_call(
    provider: str,
    model: str,
    purpose: Purpose,
    duration_s: float,
    outcome: Spend | BaseException | None,
    counters: Counters = COUNTERS,
) -> None:
    """Count a model call by the model that answered, with the usage of its reply.

    A failed call is counted by its failure: a ProviderError by its kind, any other exception by its class. A request
    that was never sent is not counted.
    """
    model, error_type = MODELS[model], ""
    readings: list[Reading] = []
    if isinstance(outcome, BaseException):
        error_type = outcome.kind if isinstance(outcome, ProviderError) else type(outcome).__name__
        if error_type in NOT_SENT:
            return
        error_type = ERRORS[error_type]
    elif outcome is not None:
        used = (
            ("input", outcome.input_tokens),
            ("output", outcome.output_tokens),
            ("cache_read", outcome.cache_read_tokens),
            ("cache_creation", outcome.cache_creation_tokens),
        )
        readings += [(m.TOKEN_USAGE, (CHAT, provider, model, kind), tokens) for kind, tokens in used[:2]]
        readings += [(m.TOKENS, (provider, model, purpose, kind), tokens) for kind, tokens in used if tokens]
        if outcome.cost_usd:
            readings.append((m.COST, (provider, model, purpose), outcome.cost_usd))
    readings.append((m.MODEL_CALLS, (CHAT, provider, model, error_type, purpose), duration_s))
    counters.record(readings)


_bill: ContextVar[Bill | None] = ContextVar("bill", default=None)


def current_bill() -> Bill | None:
    return _bill.get()
