"""Requests to models' services, each with its permit and its entry in the bill.

A caller of models activates a PermitPolicy. A provider that sends its requests itself takes a permit for each one,
retries included, and declares that with `takes_permits`. A whole call of any other provider counts as one request.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest, TokenUsage
from brainq.contracts.rate import EMPTY_RATE_REPORT, RateReport
from brainq.engine.models.asking.bill import POSSIBLY_BILLED_KINDS, Bill, BillEntry, current_bill
from brainq.engine.models.asking.rate_permit import RatePermit, current_policy
from brainq.engine.models.asking.reply_size import ReplyTooLarge
from brainq.engine.models.asking.stall_clock import stream_within_limits
from brainq.engine.models.providers import Provider
from brainq.runtime.text.estimate import with_usage


@dataclass(eq=False, slots=True)
class ServiceRequest:
    """One request to a service.

    Enter it once it is acquired: at the end of the `with`, the outcome is recorded in the bill and reported to the
    limits.
    """

    entry: BillEntry
    permit: RatePermit
    bill: Bill

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        policy = self.permit.policy
        is_limited = policy is not None and policy.limits.any_limited
        if is_limited or not self.entry.is_whole or failure is not None or self.permit.report is not EMPTY_RATE_REPORT:
            self.settle(failure)  # otherwise the bill is complete, and nothing is counted

    def acquire(self, request: ModelRequest, remaining_s: float) -> bool:
        """Wait for the permit if necessary, and return whether the thread has waited.

        Raises what `RatePermit.acquire` and `PermitPolicy.require_allowed` raise. Raises BudgetExhausted if the turn
        cannot pay for the request.
        """
        if self.permit.policy is not None:
            self.permit.policy.require_allowed(self.entry.provider, self.entry.model)
        self.bill.require(self.entry, request)
        has_waited = self.permit.acquire(request, remaining_s)
        self.bill.add(self.entry)
        return has_waited

    def note_answer(self, status: int = 200, report: RateReport | None = None) -> None:
        """Note that the answer begins, with this HTTP status, and what it says about the service's limits."""
        self.permit.note_answer(report)
        self.entry.has_begun = self.entry.has_begun or status < 400

    def add_chunk(self, chunk: ModelChunk) -> None:
        """Count a part of the reply. Raises ReplyTooLarge once the parts together are too large."""
        self.entry.add_chunk(chunk)

    def complete(self, usage: TokenUsage) -> None:
        """Note that the reply is whole, and what it used."""
        self.entry.complete(usage)

    def note_usage(self, usage: TokenUsage) -> None:
        """Note the usage that the service has reported so far in an open stream."""
        self.entry.add_usage(usage)
        self.permit.report_usage(usage)

    def retry(self, kind: str) -> None:
        """Note that the request failed with this kind of error, and that the provider sends it again by itself."""
        if self.entry.has_output or kind in POSSIBLY_BILLED_KINDS:
            self.bill.add_lost_try(self.entry)
        self.entry.begin_again()

    def settle(self, failure: BaseException | None = None, *, was_processed: bool = False) -> None:
        """Record the outcome in the bill, and report it to the limits. A failure to report does not fail the call.

        failure: why the request brought no reply, if it did not.
        was_processed: whether the service may have worked on the request though it has not answered.
        """
        is_billed = self.entry.has_begun
        if failure is not None:
            if isinstance(failure, ReplyTooLarge):
                self.entry.add_unread()
            # A reader that has the whole reply may leave before the end.
            self.entry.has_failed = not self.entry.is_whole
            is_billed = was_processed or self.entry.may_be_billed(failure)
        self.bill.end(self.entry, is_billed)
        self.permit.settle(self.entry.usage() if self.entry.is_over else None, failure)


def permit_for(provider: str, model: str, account: str = "") -> ServiceRequest:
    """Return a request, not yet acquired, under the policy and the bill of this thread.

    account: a word for the key and the address, which a service counts separately.
    """
    name = f"{provider}:{model}"
    permit = RatePermit(name, f"{name} #{account}" if account else name, current_policy())
    return ServiceRequest(BillEntry(provider, model), permit, current_bill() or Bill())


def is_metered() -> bool:
    """Return whether this thread takes permits or keeps a bill."""
    return current_policy() is not None or current_bill() is not None


def stream_with_permits(provider: Provider, request: ModelRequest) -> Iterator[ModelChunk]:
    """Return the provider's stream, with a permit for each of its requests."""
    if getattr(provider, "takes_permits", False) or not is_metered():
        return stream_within_limits(provider, request)
    return _stream_under_permit(provider, request)


def reply_with_permits(provider: Provider, request: ModelRequest) -> ModelReply:
    """Return the provider's whole reply, with a permit for each of its requests."""
    if getattr(provider, "takes_permits", False) or not is_metered():
        return with_usage(provider.generate(request), request)
    sent, request = _acquire(provider, request)
    with sent:
        reply = with_usage(provider.generate(request), request)
        sent.note_answer()
        sent.complete(reply.usage)
        return reply


def _stream_under_permit(provider: Provider, request: ModelRequest) -> Iterator[ModelChunk]:
    sent, request = _acquire(provider, request)
    with sent:
        is_answered = False
        for chunk in stream_within_limits(provider, request):
            if chunk.retry is not None:
                sent.retry(chunk.retry.kind)
            elif not is_answered:
                is_answered = True
                sent.note_answer()
            sent.add_chunk(chunk)
            if chunk.reply is not None:
                reply = with_usage(chunk.reply, request)
                sent.complete(reply.usage)
                chunk = chunk if reply is chunk.reply else chunk.model_copy(update={"reply": reply})
            yield chunk


def _acquire(provider: Provider, request: ModelRequest) -> tuple[ServiceRequest, ModelRequest]:
    """Acquire the permit of a call that is one request, and return the call with the time that remains."""
    sent, began = permit_for(provider.name, request.model), time.monotonic()
    if sent.acquire(request, request.timeout_s):
        remaining_s = max(0.001, request.timeout_s - (time.monotonic() - began))
        request = request.model_copy(update={"timeout_s": remaining_s})
    return sent, request
