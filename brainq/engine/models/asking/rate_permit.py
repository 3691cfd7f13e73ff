"""The permit of one request: its place among those that a model's service takes in a minute."""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from brainq.contracts.model import ModelRequest, TokenUsage
from brainq.contracts.rate import EMPTY_RATE_REPORT, QueueTicket, RateReport, RateWait, TokenCount
from brainq.contracts.stop import Stop, stop_of_model
from brainq.engine.models.asking.deferred import DEFAULT_REQUESTER, PermitDeferred, Requester, refuse_stopped
from brainq.engine.models.asking.retry import ServiceError
from brainq.errors import ProviderError
from brainq.runtime.observe.logs import logger
from brainq.runtime.text.estimate import estimate_request

if TYPE_CHECKING:
    from brainq.adapters.redis.rates import RedisRates

log = logger("brainq.models")
MAX_FALLBACK_WAIT_S = 2.0  # the longest wait for one of several models
GIVE_UP_EARLY_S = 2.0  # a turn leaves the queue this long before its wait ends
UNAVAILABLE_RETRY_S = 3.0  # between two attempts to reach a count that is unavailable


@dataclass(frozen=True, slots=True)
class PermitPolicy:
    """The limits that apply to a thread's model requests, and how the thread waits for its permits.

    max_thread_wait_s: the longest wait in the requesting thread. A longer one raises PermitDeferred.
    stops: stops that concern models.
    """

    limits: RedisRates
    max_thread_wait_s: float = float("inf")
    pause: Callable[[float], None] = time.sleep
    requester: Requester = DEFAULT_REQUESTER
    stops: tuple[Stop, ...] = ()

    @contextmanager
    def activate(self) -> Generator[None]:
        """Apply this policy to all model requests of this thread until the context ends."""
        token = _policy.set(self)
        try:
            yield
        finally:
            _policy.reset(token)

    def require_allowed(self, provider: str, model: str) -> None:
        """Raise what `refuse_stopped` raises if a stop concerns this model."""
        stop = stop_of_model(self.stops, provider, model) if self.stops else None
        if stop is not None:
            refuse_stopped(stop, self.requester)


_policy: ContextVar[PermitPolicy | None] = ContextVar("permit_policy", default=None)


def current_policy() -> PermitPolicy | None:
    """Return the policy that is active in this thread."""
    return _policy.get()


@dataclass(frozen=True, slots=True)
class _WaitTimes:
    """How long one request may wait for its permit.

    ends_at: when the wait is over, as `time.monotonic` counts.
    thread_s: the longest wait in the requesting thread.
    """

    ends_at: float
    thread_s: float

    @classmethod
    def of(cls, policy: PermitPolicy, remaining_s: float) -> _WaitTimes:
        """Return the times of a request that must end within `remaining_s`.

        The time limit of a waiting turn is paused, so only a part of what remains of it may pass in the thread.
        """
        total_s = policy.requester.max_wait_s
        if total_s is None:
            return cls(time.monotonic() + remaining_s, policy.max_thread_wait_s)
        return cls(time.monotonic() + total_s, min(policy.max_thread_wait_s, remaining_s / 4))

    @property
    def remaining_s(self) -> float:
        return max(0.0, self.ends_at - time.monotonic())


@dataclass(eq=False, slots=True)
class RatePermit:
    """The place of one request within the limits of its model. If nothing limits the model, the permit only reports
    what the service's answer says about limits.

    model: `provider:model`.
    name: the name of the model's count, which includes the account.
    """

    model: str
    name: str
    policy: PermitPolicy | None
    id: str = ""
    is_acquired: bool = False
    report: RateReport = EMPTY_RATE_REPORT
    _estimated: int = 0
    _max_output: int = 0
    _answered_at: float | None = None
    _is_reported: bool = False

    def acquire(self, request: ModelRequest, remaining_s: float) -> bool:
        """Wait for the permit if the model is limited, and return whether the thread has waited.

        Raises PermitDeferred if the wait is too long for the thread. Raises ProviderError if the place would come after
        `remaining_s` (kind `limited`) or later than the turn may wait (kind `waited` if the turn has not begun).
        """
        policy = self.policy
        if policy is None or not policy.limits.is_limited(self.name):
            return False
        ticket = self._new_ticket(request)
        times = _WaitTimes.of(policy, remaining_s)
        has_waited = False
        while (wait := self._request(policy, ticket, _max_queue_s(policy, request, times.remaining_s))) is not None:
            if wait.is_late:
                raise self._late_error(request, policy.requester, wait, ticket)
            if policy.requester.max_wait_s is not None:
                wait = replace(wait, wait_s=min(wait.wait_s, times.remaining_s))  # the last attempt ends the wait
            if wait.wait_s > times.thread_s:
                raise PermitDeferred(self.model, wait, ticket)
            has_waited = True
            policy.pause(wait.wait_s)
        self.is_acquired = True
        return has_waited

    def _new_ticket(self, request: ModelRequest) -> QueueTicket:
        self.id = uuid.uuid4().hex
        self._estimated = request.estimate or estimate_request(request)
        self._max_output = request.max_output_tokens or 0
        if not request.turn_id:
            return QueueTicket(self.name, self.id)
        session_id = request.session_id
        self.id = f"{session_id} {self.id}"  # begins like the ticket, because tenants share the model
        return QueueTicket.of_step(self.name, session_id, request.turn_id, request.step, request.purpose)

    def _request(self, policy: PermitPolicy, ticket: QueueTicket, max_wait_s: float) -> RateWait | None:
        tokens, rank = self._estimated + self._max_output, policy.requester.rank
        try:
            return policy.limits.take(self.name, self.id, ticket.holder, tokens, max_wait_s, rank, self._estimated)
        except Exception as failure:  # our own trouble: the model has not failed, and gets no request
            log.warning("a permit was not requested", model=self.model, why=type(failure).__name__)
            raise PermitDeferred(self.model, RateWait(UNAVAILABLE_RETRY_S, "count"), ticket) from failure

    def _late_error(
        self, request: ModelRequest, requester: Requester, wait: RateWait, ticket: QueueTicket
    ) -> ProviderError:
        if not request.in_line:
            return PermitDeferred(self.model, wait, ticket)
        kind, bound, remedy = "limited", "the deadline", "timeout_s"
        if requester.has_begun:
            bound, remedy = "the day that a turn may wait", "share of it"
        elif requester.max_wait_s is not None:
            kind, bound, remedy = "waited", "its max_wait_s", "max_wait_s"
        return ProviderError(
            f"{wait.describe(self.model)}; its place comes in {wait.wait_s:.0f} s, past {bound}: "
            f"raise the limit (BRAINQ_RATES, or the service's own), or the turn's {remedy}",
            kind=kind,
            retryable=True,
        )

    def note_answer(self, report: RateReport | None) -> None:
        """Note that the answer begins, and what it says about limits. From now on the permit counts at the service."""
        self._answered_at = self._answered_at or time.monotonic()
        self.report = report or self.report

    def report_usage(self, usage: TokenUsage) -> None:
        """Report the first usage of an open stream, so that other requests need not wait until the reply is whole.

        If the reply has a length limit, its longest length is reported with it.
        """
        if self._is_reported or not self.is_acquired or self.policy is None or not usage.input_tokens:
            return
        self._is_reported = True
        used = usage.input_tokens + (self._max_output or usage.output_tokens)
        counted = usage.input_tokens if self._max_output else used
        count = TokenCount(used, self._estimated, counted)
        try:
            self.policy.limits.report(self.name, self.id, count, bool(self._max_output))
        except Exception as failure:
            log.warning("a stream's usage was not reported", model=self.model, why=type(failure).__name__)

    def settle(self, usage: TokenUsage | None, failure: BaseException | None) -> None:
        """Report the outcome to the limits. If that fails, the permit counts for its longest time.

        usage: what the request used, also without a reply; None if it used nothing.
        """
        stop_s = getattr(failure, "retry_after_s", None)
        if isinstance(failure, ProviderError) and failure.kind == "rate_limited" and stop_s:
            self.report = replace(self.report, stop_s=stop_s)
        limits = None if self.policy is None else self.policy.limits
        if limits is None or (self.report is EMPTY_RATE_REPORT and not limits.is_limited(self.name)):
            return
        ago_s = None if self._answered_at is None else time.monotonic() - self._answered_at
        try:
            is_kept = limits.settle(self.name, self.id or uuid.uuid4().hex, self._count(usage), ago_s, self.report)
            if isinstance(failure, ServiceError):
                failure.is_shared = is_kept and self.report.stop_s > 0
        except Exception as error:
            log.warning("a permit was not settled", model=self.model, why=type(error).__name__)

    def _count(self, usage: TokenUsage | None) -> int | TokenCount | None:
        """Return the tokens used, with the error of the estimate if the service has just counted them."""
        if usage is None:
            return None
        if usage.estimated or not self.is_acquired or (self._is_reported and self._max_output):
            return usage.total
        counted = usage.input_tokens if self._max_output else usage.total
        return TokenCount(usage.total, self._estimated, counted)


def _max_queue_s(policy: PermitPolicy, request: ModelRequest, remaining_s: float) -> float:
    """Return the longest wait for which the request stays in the queue."""
    if not request.in_line:
        return min(remaining_s, policy.max_thread_wait_s, MAX_FALLBACK_WAIT_S)
    if policy.requester.max_wait_s is not None and remaining_s > GIVE_UP_EARLY_S:
        return float("inf")
    return remaining_s


def account_digest(base_url: str | None, api_key: str | None) -> str:
    """Return a digest that differs by address and key, and reveals neither."""
    return hashlib.sha256(f"{base_url or ''} {api_key or ''}".encode()).hexdigest()[:8]
