"""The bill of one model call: what its requests come to, also those that broke off, and what it may still spend."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest, Price, Purpose, Spend, TokenUsage
from brainq.errors import NOT_SENT, ProviderError
from brainq.models.asking.reply_size import MAX_REPLY_BYTES, ReplyTooLarge, reply_bytes
from brainq.models.costs import cost_usd
from brainq.observe.metrics import catalogue as m
from brainq.observe.metrics.counters import COUNTERS, Counters, Reading
from brainq.observe.metrics.recording import ERRORS, MODELS
from brainq.observe.telemetry_names import CHAT
from brainq.text.estimate import StreamedTokens, estimate_request

BudgetName = Literal["tokens", "cost"]
# The service may have worked on these, and bills them even without an answer.
POSSIBLY_BILLED_KINDS = frozenset({"timeout", "stream", "stalled", "broken", "malformed"})
# So the service answers what it does not work on.
UNBILLED_KINDS = frozenset(
    {
        *("rate_limited", "over_limit", "quota", "denied", "server", "refused", "filtered", "too_long"),
    }
)
NO_USAGE = TokenUsage()


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
    """What may still be spent on model calls, and what they have used of it. The turn's budget allowed the first
    request; each one that is lost leaves less for the next.

    price         of a request, by who it goes to
    tokens, usd   None: no limit
    reply_bytes   how large one reply may be
    spends        what each call used, in their order, also in threads that `call_within` starts
    """

    price: Price = cost_usd
    tokens: int | None = None
    usd: float | None = None
    reply_bytes: int = MAX_REPLY_BYTES
    spends: list[Spend] = field(default_factory=list[Spend])

    @contextmanager
    def activate(self) -> Generator[None]:
        """While entered, auxiliary calls of this thread are held to it."""
        token = _allowance.set(self)
        try:
            yield
        finally:
            _allowance.reset(token)

    def require(self, lost: Sequence[Spend], provider: str, model: str, usage: TokenUsage) -> None:
        """Raise BudgetExhausted where a request of this size could pass what is left after the calls, and after
        requests that the next one follows on."""
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
    """This thread's allowance; a new one without limits where none is active."""
    return _allowance.get() or Allowance()


@dataclass(eq=False)
class BillEntry:
    """What is known of one request to a service: who is asked, and what it has used.

    estimate    tokens of its input, as they were thought to be
    max_output  tokens that its reply may have; 0 if that is not known
    max_bytes   how large its reply may be
    has_begun   the service has begun to answer
    is_whole    its reply was counted by the service
    is_over     it may be billed, and nothing more comes of it
    has_failed  it brought no reply
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
        """Count a part of the reply that came. Raises ReplyTooLarge once the parts are too large together."""
        if chunk.text:
            self._written.add_text(chunk.text)
        if chunk.reasoning:
            self._written.add_text(chunk.reasoning)
        if chunk.arguments:
            self._written.add_arguments(chunk.arguments)
        if self._written.size > self.max_bytes:
            raise ReplyTooLarge(self.max_bytes)

    def add_unread(self) -> None:
        """Count the largest reply, because this one grew too large before it could be read."""
        self._written.add_up_to(self.max_bytes)

    def add_usage(self, usage: TokenUsage) -> None:
        """The service reported usage so far, in a stream that goes on."""
        self.has_begun = True
        self._reported = usage

    def begin_again(self) -> None:
        """It failed, and is sent once more: nothing is known of the new try."""
        self.has_begun, self._reported, self._written = False, NO_USAGE, StreamedTokens()

    def complete(self, usage: TokenUsage) -> None:
        """The reply is whole, and this is what it used."""
        self._reported, self.is_whole, self.has_begun, self.is_over = usage, True, True, True

    @property
    def has_output(self) -> bool:
        """Whether the service has shown that it works on it."""
        return self._reported.total > 0 or self._written.tokens > 0

    def usage(self) -> TokenUsage:
        """Return what the request has used: what was reported, and estimates of the rest. If nothing came back, nobody
        knows what the service did, and its longest reply counts."""
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
        """Return what it may be billed as when nobody reads on: while it is open, the longest reply it may have."""
        usage = self.usage()
        if self.is_over or usage.output_tokens >= self.max_output:
            return usage
        return usage.model_copy(update={"output_tokens": self.max_output})

    def may_be_billed(self, failure: BaseException) -> bool:
        """Whether its service may bill it though it failed so."""
        kind = failure.kind if isinstance(failure, ProviderError) else ""
        if self.has_output:
            return True
        return kind not in UNBILLED_KINDS if self.has_begun else kind in POSSIBLY_BILLED_KINDS


@dataclass(frozen=True, slots=True)
class ReplyCost:
    """What a reply used, and requests for it that broke off before."""

    spend: Spend
    lost: tuple[Spend, ...] = ()


@dataclass(slots=True)
class Bill:
    """One model call: the requests that it takes, in the order they were sent, and what they come to.

    Each request is entered by its ServiceRequest, so that retries inside a provider, and the members of a Fallback, are
    counted one by one and by their own names.

    provider, model   who is asked; once the reply has come, who gave it
    purpose, step     what the call is for, and the turn's step that it belongs to
    allowance         what may be spent on it
    input_tokens      what its input is thought to be billed as; None: as it is estimated
    unsent            what an attempt is charged as whose worker dies before anybody knows whether a request was sent;
                      None once the call is over
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
        """While entered, all that this thread asks of models is entered here. The call is counted by how it ends."""
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
        """Raise BudgetExhausted where another request could pass what is left, after others were lost."""
        sent.estimate = estimate_request(request) if self.input_tokens is None else self.input_tokens
        sent.max_output, sent.max_bytes = request.max_output_tokens or 0, self.allowance.reply_bytes
        usage = TokenUsage(input_tokens=sent.estimate, output_tokens=sent.max_output)
        over = [self._lost_spend(request) for request in self._requests if request.is_over]
        self.allowance.require([*self._lost_tries, *over], sent.provider, sent.model, usage)

    def add(self, sent: BillEntry) -> None:
        """The request goes out."""
        self._requests.append(sent)

    def add_lost_try(self, sent: BillEntry) -> None:
        """A try of it may be billed, and it is sent once more."""
        self._lost_tries.append(self._lost_spend(sent))

    def end(self, request: BillEntry, is_billed: bool) -> None:
        """A request is over. Of one that brought a reply the usage comes afterwards."""
        if request.is_over or request not in self._requests:
            return
        request.is_over = is_billed
        if not is_billed:
            self._requests.remove(request)

    def settle(self, reply: ModelReply) -> ReplyCost:
        """The reply has come: what it used, by the name and the price of the model that gave it, and what was lost on
        the way to it. Raises ReplyTooLarge."""
        if reply_bytes(reply) > self.allowance.reply_bytes:
            raise ReplyTooLarge(self.allowance.reply_bytes)
        if self._requests and not self._requests[-1].has_failed:
            self._requests.pop()  # it brought the reply
        if reply.answered_by is not None:
            self.provider, self.model = reply.answered_by.provider, reply.answered_by.model
        usd = self.allowance.price(self.provider, self.model, reply.usage)
        spend = self._reply_spend = Spend.from_usage(self.purpose, self.step, self.model, reply.usage, usd)
        lost = self.close() if self._requests or self._lost_tries else ()
        self.allowance.spends.append(spend)
        return ReplyCost(spend, lost)

    def close(self, failure: BaseException | None = None) -> tuple[Spend, ...]:
        """The call is over: what it lost."""
        for request in tuple(self._requests):  # of a provider that did not say what became of them
            self.end(request, request.has_begun if failure is None else request.may_be_billed(failure))
        self.unsent = None
        lost = (*self._lost_tries, *map(self._lost_spend, self._requests))
        self.allowance.spends += lost
        return lost

    def spends_so_far(self) -> tuple[Spend, ...]:
        """Return what an attempt is charged as if its worker dies here: its service goes on with an open request, which
        is taken to come to its worst case. Any thread may call it.
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
    """Count a model call, by who answered, and what its reply used. One that failed is counted by its failure: a
    ProviderError by its kind, any other by its class. A request that was never sent is not counted."""
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
    """This thread's active Bill."""
    return _bill.get()
