"""Permits: a request's place among those that a model's service takes in a minute.

A caller of models activates a PermitPolicy. A provider that makes its requests itself takes a permit for each, retries
included (`takes_permits`); a whole call of any other is one request (see whole_call)."""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

from brainq.contracts.model import ModelRequest, Spend, TokenUsage
from brainq.contracts.rate import EMPTY_RATE_REPORT, RateReport, RateWait, TokenCount
from brainq.errors import ProviderError
from brainq.models.asking.bill import POSSIBLY_BILLED_KINDS, Bill, BilledRequest, current_bill
from brainq.models.asking.failures import read_rate_limits
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
    """One request's permit, and `request`, its entry in the bill. Without limits it only learns from the answer.

    Once acquired, it is entered for as long as the request takes: `with permit:` reports at its end what came of it.

    is_stopped   the fleet waits as its service asked: the next request waits for its permit, and for nothing else
    """

    provider: str
    requested_model: str
    account: str = ""
    policy: PermitPolicy | None = None
    bill: Bill = field(default_factory=Bill)
    is_acquired: bool = False
    is_stopped: bool = False
    request: BilledRequest = field(init=False)
    model: str = field(init=False)
    name: str = field(init=False)
    id: str = field(default="", init=False)
    _answered_at: float | None = None
    _rate_answer: RateReport = EMPTY_RATE_REPORT
    _estimated: int = 0
    _max_output: int = 0
    _is_reported: bool = False

    def __post_init__(self) -> None:
        """`name`: the count it is in."""
        self.model = f"{self.provider}:{self.requested_model}"
        self.name = f"{self.model} #{self.account}" if self.account else self.model

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        if failure is not None:
            self.fail(failure)
        self.settle()

    def acquire(self, request: ModelRequest, remaining_s: float) -> bool:
        """Wait for it, if need be; whether that was so.

        Raises PermitDeferred, and ProviderError where it would come after `remaining_s` (`limited`), or for a turn
        later than that may wait (`waited` where it has not begun); BudgetExhausted, where the turn cannot pay for it.
        """
        self.bill.require(self.provider, self.requested_model, request)
        has_waited = self._acquire(request, remaining_s)
        self.request = self.bill.add_request(self.provider, self.requested_model, request)
        return has_waited

    def _acquire(self, request: ModelRequest, remaining_s: float) -> bool:
        if self.policy is None or not self.policy.limits.is_limited(self.name):
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
        prefix = f"{wait.describe(self.model)}; its place comes in {wait.wait_s:.0f} s, past"
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
            log.warning("a permit was not requested", model=self.model, why=type(failure).__name__)
            raise PermitDeferred(
                self.model, RateWait(UNAVAILABLE_RETRY_S, "count"), f"{self.name}\n{ticket}"
            ) from failure

    def note_answer(self, headers: Mapping[str, str] | None = None, status: int = 200) -> None:
        """The answer begins: from here on its permit counts at the service."""
        self._answered_at = self._answered_at or time.monotonic()
        self.request.has_begun = self.request.has_begun or status < 400
        if headers is not None and self.policy is not None:
            self._rate_answer = read_rate_limits(headers, status)

    def note_usage(self, usage: TokenUsage) -> None:
        """The service reported usage so far, in a stream that goes on."""
        self.request.add_usage(usage)
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

    def retry(self, request: ModelRequest, kind: str) -> None:
        """The request failed so, and the provider sends it again by itself."""
        self.request.has_failed = True
        self.bill.end(self.request, self.request.has_output or kind in POSSIBLY_BILLED_KINDS)
        self.request = self.bill.add_request(self.provider, self.requested_model, request)

    def fail(self, failure: BaseException, was_processed: bool = False) -> None:
        """No reply comes of it. `was_processed`: the service may have worked on it, though it has answered nothing."""
        # A reader that has the whole reply may leave without reading to the end.
        self.request.has_failed = not self.request.is_whole
        self.bill.end(self.request, was_processed or self.request.may_be_billed(failure))
        stop_s = getattr(failure, "retry_after_s", None)
        if isinstance(failure, ProviderError) and failure.kind == "rate_limited" and stop_s:
            self._rate_answer = replace(self._rate_answer, stop_s=stop_s)

    def settle(self) -> None:
        """Report what came of it. A failure of that is not the call's: the permit then counts for its longest time."""
        self.bill.end(self.request, self.request.has_begun)
        if self.policy is None:
            return
        if self._rate_answer is EMPTY_RATE_REPORT and not self.policy.limits.is_limited(self.name):
            return  # the model has no limit
        ago_s = None if self._answered_at is None else time.monotonic() - self._answered_at
        try:
            is_kept = self.policy.limits.settle(
                self.name, self.id or uuid.uuid4().hex, self._count(), ago_s, self._rate_answer
            )
            self.is_stopped = is_kept and self._rate_answer.stop_s > 0
        except Exception as failure:
            log.warning("a permit was not settled", model=self.model, why=type(failure).__name__)

    def _count(self) -> int | TokenCount | None:
        """What it used, also without a reply; and how far off its estimate was, if the service has just counted."""
        if not self.request.is_over:
            return None
        usage = self.request.usage()
        if usage.estimated or not self.is_acquired or (self._is_reported and self._max_output):
            return usage.total
        counted = usage.input_tokens if self._max_output else usage.total
        return TokenCount(usage.total, self._estimated, counted)


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
