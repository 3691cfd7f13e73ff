"""Permits: a request's place among those that a model's service takes in a minute.

A caller of models activates a PermitPolicy. A provider that makes its requests itself takes a permit for each, retries
included (`takes_permits`); a whole call of any other is one request (`stream_with_permits`, `reply_with_permits`)."""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest, Spend, TokenUsage
from brainq.contracts.rate import EMPTY_RATE_REPORT, RateReport, RateWait, TokenCount
from brainq.errors import ProviderError
from brainq.models.asking.bill import POSSIBLY_BILLED_KINDS, Bill, BilledRequest, current_bill
from brainq.models.asking.failures import read_rate_limits
from brainq.models.asking.pace import paced_stream
from brainq.models.base import Provider
from brainq.observe.logs import logger
from brainq.ports.redis_turns import RateLimits
from brainq.text.estimate import estimate_request

log = logger("brainq.models")

MAX_FALLBACK_WAIT_S = 2.0  # the longest wait for one of several models

GIVE_UP_EARLY_S = 2.0  # so long before its wait is over a turn stops queueing

UNAVAILABLE_RETRY_S = 3.0  # between two requests to a count that is unavailable


class PermitDeferred(ProviderError):
    """The model is limited, and the place comes in `wait_s` seconds: longer than its thread may be held.

    The place in the queue is kept: the same step gets it when it asks again in time.

    queue_position   the count's name, and the ticket that waits there
    spends           what earlier requests to other models came to, which broke off
    """

    def __init__(self, model: str, wait: RateWait, queue_position: str = "") -> None:
        self.wait_s = wait.wait_s
        self.queue_position = queue_position
        self.why = wait.told(model)
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


@dataclass(frozen=True, slots=True)
class PermitPolicy:
    """How permits are taken.

    max_thread_wait_s   the longest wait in the requesting thread; a longer one raises PermitDeferred
    """

    limits: RateLimits
    max_thread_wait_s: float = float("inf")
    pause: Callable[[float], None] = time.sleep
    requester: Requester = DEFAULT_REQUESTER

    @contextmanager
    def activate(self) -> Generator[None]:
        """While entered, all model requests of this thread take permits so."""
        token = _policy.set(self)
        try:
            yield
        finally:
            _policy.reset(token)


_policy: ContextVar[PermitPolicy | None] = ContextVar("permit_policy", default=None)


@dataclass(slots=True)
class RatePermit:
    """One request's permit. Without limits it takes none, and only learns from the service's answers. What the request
    comes to is entered in `bill`.

    is_stopped   the fleet waits as its service asked: the next request waits for its permit, and for nothing else
    """

    provider: str
    requested_model: str
    account: str = ""
    policy: PermitPolicy | None = None
    bill: Bill = field(default_factory=Bill)
    is_acquired: bool = False
    is_stopped: bool = False
    _answered_at: float | None = None
    _used: TokenUsage | None = None
    _rate_answer: RateReport = EMPTY_RATE_REPORT
    _estimated: int = 0
    _max_output: int = 0
    _is_reported: bool = False
    _request: BilledRequest | None = None
    model: str = field(init=False)
    name: str = field(init=False)
    id: str = field(default="", init=False)

    def __post_init__(self) -> None:
        """`name`: the count it is in."""
        self.model = f"{self.provider}:{self.requested_model}"
        self.name = f"{self.model} #{self.account}" if self.account else self.model

    def acquire(self, request: ModelRequest, remaining_s: float) -> bool:
        """Wait for it, if need be; whether that was so.

        Raises PermitDeferred, and ProviderError where it would come after `remaining_s` (`limited`), or for a turn
        later than that may wait (`waited` where it has not begun); BudgetExhausted, where the turn cannot pay for it.
        """
        self.bill.require(self.provider, self.requested_model, request)
        has_waited = self._acquire(request, remaining_s)
        self._request = self.bill.add_request(self.provider, self.requested_model, request)
        return has_waited

    def _acquire(self, request: ModelRequest, remaining_s: float) -> bool:
        if self.policy is None or not self.policy.limits.holds(self.name):
            return False
        ticket = self.id = uuid.uuid4().hex  # both begin with the session: tenants share the model
        if request.turn_id:
            ticket = f"{request.session_id} {request.turn_id} {request.step} {request.purpose}"
            self.id = f"{request.session_id} {self.id}"
        self._estimated = request.estimate or estimate_request(request)
        self._max_output = request.max_output_tokens or 0
        tokens = self._estimated + self._max_output
        requester, hold_s = self.policy.requester, self.policy.max_thread_wait_s
        ends_at = time.monotonic() + remaining_s
        if requester.max_wait_s is not None:  # its time limit is paused, and little of it is slept
            ends_at = time.monotonic() + requester.max_wait_s
            hold_s = min(hold_s, remaining_s / 4)
        queue_position = f"{self.name}\n{ticket}"
        has_waited = False
        while True:
            remaining_s = max(0.0, ends_at - time.monotonic())
            wait = self._request_permit(
                self.policy.limits, ticket, tokens, self._max_wait_s(request, requester, remaining_s), requester.rank
            )
            if wait is None:
                self.is_acquired = True
                return has_waited
            if wait.is_late:
                raise self._late_error(request, requester, wait, queue_position)
            if requester.max_wait_s is not None and wait.wait_s > remaining_s:
                wait = replace(wait, wait_s=remaining_s)  # the last try comes when the wait is over
            if wait.wait_s > hold_s:
                raise PermitDeferred(self.model, wait, queue_position)
            has_waited = True
            self.policy.pause(wait.wait_s)

    def _max_wait_s(self, request: ModelRequest, requester: Requester, remaining_s: float) -> float:
        """The longest wait for which the request is queued."""
        if not request.in_line:
            assert self.policy is not None
            return min(remaining_s, self.policy.max_thread_wait_s, MAX_FALLBACK_WAIT_S)
        if requester.max_wait_s is not None and remaining_s > GIVE_UP_EARLY_S:
            return float("inf")
        return remaining_s

    def _late_error(
        self, request: ModelRequest, requester: Requester, wait: RateWait, queue_position: str
    ) -> ProviderError:
        if not request.in_line:
            return PermitDeferred(self.model, wait, queue_position)
        prefix = f"{wait.told(self.model)}; its place comes in {wait.wait_s:.0f} s, past"
        limit = "raise the limit (BRAINQ_RATES, or the service's own), or the turn's"
        if requester.has_begun:
            return ProviderError(
                f"{prefix} the day that a turn may wait: {limit} share of it", kind="limited", retryable=True
            )
        if requester.max_wait_s is not None:
            return ProviderError(f"{prefix} its max_wait_s: {limit} max_wait_s", kind="waited", retryable=True)
        return ProviderError(f"{prefix} the deadline: {limit} timeout_s", kind="limited", retryable=True)

    def _request_permit(
        self, limits: RateLimits, ticket: str, tokens: int, max_wait_s: float, rank: int
    ) -> RateWait | None:
        try:
            return limits.take(self.name, self.id, ticket, tokens, max_wait_s, rank, self._estimated)
        except Exception as failure:  # our own trouble: the model is not asked, and has not failed
            log.warning("no place was asked for", model=self.model, why=type(failure).__name__)
            raise PermitDeferred(
                self.model, RateWait(UNAVAILABLE_RETRY_S, "count"), f"{self.name}\n{ticket}"
            ) from failure

    def note_answer(self, headers: Mapping[str, str] | None = None, status: int = 200) -> None:
        """The answer begins: from here on its permit counts at the service."""
        self._answered_at = self._answered_at or time.monotonic()
        if self._request is not None and status < 400:
            self._request.has_begun = True
        if headers is not None and self.policy is not None:
            self._rate_answer = read_rate_limits(headers, status)

    def note_chunk(self, chunk: ModelChunk) -> None:
        """A part of the reply came."""
        if self._request is not None:
            self._request.add_chunk(chunk)

    def note_retry(self, request: ModelRequest, kind: str) -> None:
        """The request failed so, and the provider sends it again by itself."""
        if self._request is not None:
            self._request.has_failed = True
            self.bill.end(self._request, self._request.has_output or kind in POSSIBLY_BILLED_KINDS)
            self._request = self.bill.add_request(self.provider, self.requested_model, request)

    def note_usage(self, usage: TokenUsage) -> None:
        """The service reported usage so far, in a stream that goes on."""
        if self._request is not None:
            self._request.add_usage(usage)
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
            log.warning("a stream's usage was not reported", model=self.model, why=type(failure).__name__)

    def _count(self) -> int | TokenCount | None:
        """What it used; and how far off its estimate was, where the service has counted and that is not known yet."""
        usage = self._used
        if usage is None or usage.estimated or not self.is_acquired or (self._is_reported and self._max_output):
            return None if usage is None else usage.total
        counted = usage.input_tokens if self._max_output else usage.total
        return TokenCount(usage.total, self._estimated, counted)

    def set_usage(self, usage: TokenUsage) -> None:
        """What the service counted."""
        self._used = usage
        if self._request is not None:
            self._request.complete(usage)

    def note_failure(self, failure: BaseException, is_read: bool = False) -> None:
        """No reply comes of it. `is_read`: the service may have worked on it, though it has answered nothing."""
        if self._request is not None:
            # A reader that has the whole reply may leave without reading to the end.
            self._request.has_failed = not self._request.is_whole
            self._end(self._request, is_read or self._request.may_be_billed(failure))

    def _end(self, request: BilledRequest, is_billed: bool) -> None:
        """The request is over. Its place counts what it has used, where it brought no reply, too."""
        if is_billed and self._used is None:
            self._used = request.usage()
        self.bill.end(request, is_billed)
        self._request = None

    def note_stop(self, wait_s: float) -> None:
        """The service takes nothing for so long."""
        self._rate_answer = RateReport(self._rate_answer.requests, self._rate_answer.tokens, wait_s)

    def settle(self) -> None:
        """Report what came of it. A failure of that is not the call's: the permit then counts for its longest time."""
        if self._request is not None:
            self._end(self._request, self._request.has_begun)
        if self.policy is None:
            return
        if self._rate_answer is EMPTY_RATE_REPORT and not self.policy.limits.holds(self.name):
            return  # the model has no limit
        ago_s = None if self._answered_at is None else time.monotonic() - self._answered_at
        try:
            is_kept = self.policy.limits.settle(
                self.name, self.id or uuid.uuid4().hex, self._count(), ago_s, self._rate_answer
            )
            self.is_stopped = is_kept and self._rate_answer.stop_s > 0
        except Exception as failure:
            log.warning("a model's place was not settled", model=self.model, why=type(failure).__name__)


def permit_for(provider: str, model: str, account: str = "") -> RatePermit:
    """A permit, not yet acquired, for one request of `provider` about `model`.

    account   distinguishes keys and addresses that a service counts separately
    """
    return RatePermit(provider, model, account, _policy.get(), current_bill() or Bill())


def account_digest(base_url: str | None, api_key: str | None) -> str:
    """A digest that differs by address and key, and shows neither."""
    return hashlib.sha256(f"{base_url or ''} {api_key or ''}".encode()).hexdigest()[:8]


def stream_with_permits(provider: Provider, request: ModelRequest) -> Iterator[ModelChunk]:
    """The provider's stream, each of its requests with a permit."""
    if _takes_own_permits(provider) or not _is_metered():
        return paced_stream(provider, request)
    return _stream_under_permit(provider, request)


def reply_with_permits(provider: Provider, request: ModelRequest) -> ModelReply:
    """The provider's whole reply, each of its requests with a permit."""
    if _takes_own_permits(provider) or not _is_metered():
        return provider.generate(request)
    with call_permit(provider, request) as (place, sent):
        reply = provider.generate(sent)
        place.note_answer()
        place.set_usage(reply.usage)
        return reply


def _is_metered() -> bool:
    """Whether this thread takes permits, or keeps a bill."""
    return _policy.get() is not None or current_bill() is not None


def _takes_own_permits(provider: Provider) -> bool:
    """A provider declares it by `takes_permits = True`: it takes a `permit_for` each request."""
    return bool(getattr(provider, "takes_permits", False))


def _stream_under_permit(provider: Provider, request: ModelRequest) -> Iterator[ModelChunk]:
    with call_permit(provider, request) as (place, sent):
        is_answered = False
        for chunk in paced_stream(provider, sent):
            if chunk.retry is not None:
                place.note_retry(sent, chunk.retry.kind)
            elif not is_answered:
                is_answered = True
                place.note_answer()
            place.note_chunk(chunk)
            if chunk.reply is not None:
                place.set_usage(chunk.reply.usage)
            yield chunk


@contextmanager
def call_permit(provider: Provider, request: ModelRequest) -> Generator[tuple[RatePermit, ModelRequest]]:
    """A permit for a call that is one request, and that call with the time that is left."""
    place, began = permit_for(provider.name, request.model), time.monotonic()
    if place.acquire(request, request.timeout_s):
        remaining_s = max(0.001, request.timeout_s - (time.monotonic() - began))
        request = request.model_copy(update={"timeout_s": remaining_s})
    try:
        yield place, request
    except BaseException as failure:
        place.note_failure(failure)
        if isinstance(failure, ProviderError) and failure.kind == "rate_limited":
            wait_s = getattr(failure, "retry_after_s", None)
            if wait_s:
                place.note_stop(wait_s)
        raise
    finally:
        place.settle()
