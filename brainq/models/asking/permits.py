"""Permits: a request's place among those that a model's service takes in a minute.

A caller of models activates a PermitPolicy. A provider that makes its requests itself takes a permit for each, retries
included (`takes_permits`); a whole call of any other is one request.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest, Spend, TokenUsage
from brainq.contracts.rate import EMPTY_RATE_REPORT, QueueTicket, RateReport, RateWait, TokenCount
from brainq.contracts.stop import MAX_PAUSED_S, Stop, stop_of_model
from brainq.errors import ProviderError
from brainq.models.asking.bill import POSSIBLY_BILLED_KINDS, Bill, BilledRequest, current_bill
from brainq.models.asking.failures import ServiceError, read_rate_limits
from brainq.models.asking.reply_size import ReplyTooLarge
from brainq.models.asking.stall_clock import stream_within_limits
from brainq.models.providers import Provider
from brainq.observe.logs import logger
from brainq.ports.redis_turns import RateLimits
from brainq.text.estimate import estimate_request, with_usage

log = logger("brainq.models")
MAX_FALLBACK_WAIT_S = 2.0  # the longest wait for one of several models
GIVE_UP_EARLY_S = 2.0  # so long before its wait is over a turn stops queueing
UNAVAILABLE_RETRY_S = 3.0  # between two requests to a count that is unavailable


class PermitDeferred(ProviderError):
    """The model is limited, and the place comes in `wait_s` seconds: longer than its thread may be held.

    The place in the queue is kept: the same step gets it when it asks again in time.

    ticket   that it waits with; None: it has none
    stop     the field of the stop that it waits for; "": for none
    spends   what earlier requests to other models came to, which broke off
    """

    stop = ""

    def __init__(self, model: str, wait: RateWait, ticket: QueueTicket | None = None) -> None:
        self.wait_s = wait.wait_s
        self.ticket = ticket
        self.why = wait.describe(model)
        self.spends: tuple[Spend, ...] = ()
        super().__init__(f"waits for {self.why}, {wait.wait_s:.0f} s", kind="limited", retryable=True)


@dataclass(frozen=True, slots=True)
class Requester:
    """For whom one thread makes requests.

    rank       in its tenant's queue: the lower goes first
    max_wait_s how long a turn may wait for a permit, while its time limit is paused; None: it is not a turn's step, and
               waits within its time
    has_begun  the turn has a reply: its wait is not bound by its `max_wait_s`
    """

    rank: int = 2
    max_wait_s: float | None = None
    has_begun: bool = False


DEFAULT_REQUESTER = Requester()


def may_wait(requester: Requester) -> bool:
    """Whether it may wait any longer for what operators have paused."""
    return requester.max_wait_s is None or requester.max_wait_s >= 1.0


class StopDeferred(PermitDeferred):
    """Operators have paused what the turn needs. It waits until that is lifted, and no longer than it may."""

    def __init__(self, stop: Stop, requester: Requester) -> None:
        self.wait_s = MAX_PAUSED_S if requester.max_wait_s is None else requester.max_wait_s
        self.ticket, self.stop, self.why = None, stop.field, stop.describe()
        self.spends = ()
        ProviderError.__init__(self, self.why, kind="limited", retryable=True)


class ModelForbidden(ProviderError):
    """Operators have forbidden the model, or whose call it is: it is not asked."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(stop.describe(), kind="forbidden", retryable=False)


def meet_stop(stop: Stop, requester: Requester) -> None:
    """Raises StopDeferred, ModelForbidden; ProviderError where a pause lasts longer than the turn may wait."""
    if stop.mode == "forbid":
        raise ModelForbidden(stop)
    if not may_wait(requester):
        kind = "limited" if requester.has_begun else "waited"
        raise ProviderError(stop.describe(), kind=kind, retryable=True)
    raise StopDeferred(stop, requester)


@dataclass(frozen=True, slots=True)
class PermitPolicy:
    """How permits are taken.

    max_thread_wait_s   the longest wait in the requesting thread; a longer one raises PermitDeferred
    stops               models that operators have stopped
    """

    limits: RateLimits
    max_thread_wait_s: float = float("inf")
    pause: Callable[[float], None] = time.sleep
    requester: Requester = DEFAULT_REQUESTER
    stops: tuple[Stop, ...] = ()

    @contextmanager
    def activate(self) -> Generator[None]:
        """While entered, all model requests of this thread take permits so."""
        token = _policy.set(self)
        try:
            yield
        finally:
            _policy.reset(token)


_policy: ContextVar[PermitPolicy | None] = ContextVar("permit_policy", default=None)


@dataclass(eq=False)
class RatePermit(BilledRequest):
    """One request to a service: its permit, and its entry in the bill. Without limits it only learns from the answer.

    Once acquired, it is entered for as long as the request takes: `with permit:` reports at its end what came of it.
    """

    account: str = ""
    policy: PermitPolicy | None = None
    bill: Bill = field(default_factory=Bill)
    is_acquired: bool = field(default=False, init=False)
    id: str = field(default="", init=False)
    _answered_at: float | None = field(default=None, init=False)
    _rate_answer: RateReport = field(default=EMPTY_RATE_REPORT, init=False)
    _estimated: int = field(default=0, init=False)
    _max_output: int = field(default=0, init=False)
    _is_reported: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._model_name = f"{self.provider}:{self.model}"
        self.name = f"{self._model_name} #{self.account}" if self.account else self._model_name  # of its count

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        is_limited = self.policy is not None and self.policy.limits.any_limited
        if is_limited or not self.is_whole or failure is not None or self._rate_answer is not EMPTY_RATE_REPORT:
            self.settle(failure)  # else the bill has it all, and nobody counts

    def acquire(self, request: ModelRequest, remaining_s: float) -> bool:
        """Wait for it, if need be; whether that was so.

        Raises PermitDeferred, and ProviderError where it would come after `remaining_s` (`limited`), or for a turn
        later than that may wait (`waited` where it has not begun); BudgetExhausted, where the turn cannot pay for it;
        ModelForbidden.
        """
        if self.policy is not None and self.policy.stops:
            stop = stop_of_model(self.policy.stops, self.provider, self.model)
            if stop is not None:
                meet_stop(stop, self.policy.requester)
        self.bill.require(self, request)
        has_waited = False
        if self.policy is not None and self.policy.limits.is_limited(self.name):
            has_waited = self._acquire(self.policy, request, remaining_s)
        self.bill.add(self)
        return has_waited

    def _acquire(self, policy: PermitPolicy, request: ModelRequest, remaining_s: float) -> bool:
        self.id = uuid.uuid4().hex
        ticket = QueueTicket(self.name, self.id)
        if request.turn_id:
            session_id = request.session_id
            self.id = f"{session_id} {self.id}"  # as the ticket's, for tenants share the model
            ticket = QueueTicket.of_step(self.name, session_id, request.turn_id, request.step, request.purpose)
        self._estimated = request.estimate or estimate_request(request)
        self._max_output = request.max_output_tokens or 0
        tokens = self._estimated + self._max_output
        requester, hold_s = policy.requester, policy.max_thread_wait_s
        ends_at = time.monotonic() + remaining_s
        if requester.max_wait_s is not None:  # its time limit is paused, and little of it is slept
            ends_at = time.monotonic() + requester.max_wait_s
            hold_s = min(hold_s, remaining_s / 4)
        has_waited = False
        while True:
            remaining_s = max(0.0, ends_at - time.monotonic())
            max_wait_s = _max_queue_s(policy, request, remaining_s)
            wait = self._request_permit(policy.limits, ticket, tokens, max_wait_s, requester.rank)
            if wait is None:
                self.is_acquired = True
                return has_waited
            if wait.is_late:
                raise self._late_error(request, requester, wait, ticket)
            if requester.max_wait_s is not None and wait.wait_s > remaining_s:
                wait = replace(wait, wait_s=remaining_s)  # the last try comes when the wait is over
            if wait.wait_s > hold_s:
                raise PermitDeferred(self._model_name, wait, ticket)
            has_waited = True
            policy.pause(wait.wait_s)

    def _late_error(
        self, request: ModelRequest, requester: Requester, wait: RateWait, ticket: QueueTicket
    ) -> ProviderError:
        if not request.in_line:
            return PermitDeferred(self._model_name, wait, ticket)
        prefix = f"{wait.describe(self._model_name)}; its place comes in {wait.wait_s:.0f} s, past"
        limit = "raise the limit (BRAINQ_RATES, or the service's own), or the turn's"
        if requester.has_begun:
            return ProviderError(
                f"{prefix} the day that a turn may wait: {limit} share of it", kind="limited", retryable=True
            )
        if requester.max_wait_s is not None:
            return ProviderError(f"{prefix} its max_wait_s: {limit} max_wait_s", kind="waited", retryable=True)
        return ProviderError(f"{prefix} the deadline: {limit} timeout_s", kind="limited", retryable=True)

    def _request_permit(
        self, limits: RateLimits, ticket: QueueTicket, tokens: int, max_wait_s: float, rank: int
    ) -> RateWait | None:
        try:
            return limits.take(self.name, self.id, ticket.holder, tokens, max_wait_s, rank, self._estimated)
        except Exception as failure:  # our own trouble: the model is not asked, and has not failed
            log.warning("a permit was not requested", model=self._model_name, why=type(failure).__name__)
            raise PermitDeferred(self._model_name, RateWait(UNAVAILABLE_RETRY_S, "count"), ticket) from failure

    def note_answer(self, headers: Mapping[str, str] | None = None, status: int = 200) -> None:
        """The answer begins: from here on its permit counts at the service."""
        self._answered_at = self._answered_at or time.monotonic()
        self.has_begun = self.has_begun or status < 400
        if headers is not None and self.policy is not None:
            self._rate_answer = read_rate_limits(headers, status)

    def note_usage(self, usage: TokenUsage) -> None:
        """The service reported usage so far, in a stream that goes on."""
        self.add_usage(usage)
        if self.is_acquired and self.policy is not None and usage.input_tokens and not self._is_reported:
            self._report(self.policy.limits, usage)

    def _report(self, limits: RateLimits, usage: TokenUsage) -> None:
        """Others learn from it before the reply is whole. Where its output has a limit, all is known by now."""
        self._is_reported = True
        used = usage.input_tokens + (self._max_output or usage.output_tokens)
        counted = usage.input_tokens if self._max_output else used
        try:
            limits.report(self.name, self.id, TokenCount(used, self._estimated, counted), bool(self._max_output))
        except Exception as failure:
            log.warning("a stream's usage was not reported", model=self._model_name, why=type(failure).__name__)

    def retry(self, kind: str) -> None:
        """The request failed so, and the provider sends it again by itself."""
        if self.has_output or kind in POSSIBLY_BILLED_KINDS:
            self.bill.add_lost_try(self)
        self.begin_again()

    def settle(self, failure: BaseException | None = None, *, was_processed: bool = False) -> None:
        """Enter what came of it into the bill, and report it to the limit. A failure of that is not the call's: the
        permit then counts for its longest time.

        failure         no reply comes of it
        was_processed   the service may have worked on it, though it has answered nothing
        """
        if failure is None:
            self.bill.end(self, self.has_begun)
        else:
            self._fail(failure, was_processed)
        limits = None if self.policy is None else self.policy.limits
        if limits is None or (self._rate_answer is EMPTY_RATE_REPORT and not limits.is_limited(self.name)):
            return  # the model has no limit
        ago_s = None if self._answered_at is None else time.monotonic() - self._answered_at
        try:
            is_kept = limits.settle(self.name, self.id or uuid.uuid4().hex, self._count(), ago_s, self._rate_answer)
            if isinstance(failure, ServiceError):
                failure.is_shared = is_kept and self._rate_answer.stop_s > 0
        except Exception as error:
            log.warning("a permit was not settled", model=self._model_name, why=type(error).__name__)

    def _fail(self, failure: BaseException, was_processed: bool) -> None:
        if isinstance(failure, ReplyTooLarge):
            self.add_unread()
        # A reader that has the whole reply may leave without reading to the end.
        self.has_failed = not self.is_whole
        self.bill.end(self, was_processed or self.may_be_billed(failure))
        stop_s = getattr(failure, "retry_after_s", None)
        if isinstance(failure, ProviderError) and failure.kind == "rate_limited" and stop_s:
            self._rate_answer = replace(self._rate_answer, stop_s=stop_s)

    def _count(self) -> int | TokenCount | None:
        """What it used, also without a reply; and how far off its estimate was, if the service has just counted."""
        if not self.is_over:
            return None
        usage = self.usage()
        if usage.estimated or not self.is_acquired or (self._is_reported and self._max_output):
            return usage.total
        counted = usage.input_tokens if self._max_output else usage.total
        return TokenCount(usage.total, self._estimated, counted)


def _max_queue_s(policy: PermitPolicy, request: ModelRequest, remaining_s: float) -> float:
    """The longest wait for which the request is queued."""
    if not request.in_line:
        return min(remaining_s, policy.max_thread_wait_s, MAX_FALLBACK_WAIT_S)
    if policy.requester.max_wait_s is not None and remaining_s > GIVE_UP_EARLY_S:
        return float("inf")
    return remaining_s


def permit_for(provider: str, model: str, account: str = "") -> RatePermit:
    """A permit, not yet acquired, for one request of `provider` about `model`.

    account   distinguishes keys and addresses that a service counts separately
    """
    return RatePermit(provider, model, account, _policy.get(), current_bill() or Bill())


def account_digest(base_url: str | None, api_key: str | None) -> str:
    """A digest that differs by address and key, and shows neither."""
    return hashlib.sha256(f"{base_url or ''} {api_key or ''}".encode()).hexdigest()[:8]


def is_metered() -> bool:
    """Whether this thread takes permits, or keeps a bill."""
    return _policy.get() is not None or current_bill() is not None


def stream_with_permits(provider: Provider, request: ModelRequest) -> Iterator[ModelChunk]:
    """The provider's stream, each of its requests with a permit."""
    if getattr(provider, "takes_permits", False) or not is_metered():
        return stream_within_limits(provider, request)
    return _stream_under_permit(provider, request)


def reply_with_permits(provider: Provider, request: ModelRequest) -> ModelReply:
    """The provider's whole reply, each of its requests with a permit."""
    if getattr(provider, "takes_permits", False) or not is_metered():
        return with_usage(provider.generate(request), request)
    permit, sent = _acquire_permit(provider, request)
    with permit:
        reply = with_usage(provider.generate(sent), sent)
        permit.note_answer()
        permit.complete(reply.usage)
        return reply


def _stream_under_permit(provider: Provider, request: ModelRequest) -> Iterator[ModelChunk]:
    permit, sent = _acquire_permit(provider, request)
    with permit:
        is_answered = False
        for chunk in stream_within_limits(provider, sent):
            if chunk.retry is not None:
                permit.retry(chunk.retry.kind)
            elif not is_answered:
                is_answered = True
                permit.note_answer()
            permit.add_chunk(chunk)
            if chunk.reply is not None:
                reply = with_usage(chunk.reply, sent)
                permit.complete(reply.usage)
                chunk = chunk if reply is chunk.reply else chunk.model_copy(update={"reply": reply})
            yield chunk


def _acquire_permit(provider: Provider, request: ModelRequest) -> tuple[RatePermit, ModelRequest]:
    """A permit for a call that is one request, and that call with the time that is left."""
    permit, began = permit_for(provider.name, request.model), time.monotonic()
    if permit.acquire(request, request.timeout_s):
        remaining_s = max(0.001, request.timeout_s - (time.monotonic() - began))
        request = request.model_copy(update={"timeout_s": remaining_s})
    return permit, request
