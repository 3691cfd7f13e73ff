"""Errors of model calls that are not sent now: the model is limited, or operators have paused or forbidden it."""

from __future__ import annotations

from dataclasses import dataclass

from brainq.contracts.model import Spend
from brainq.contracts.rate import QueueTicket, RateWait
from brainq.contracts.stop import MAX_PAUSED_S, Stop
from brainq.errors import ProviderError


@dataclass(frozen=True, slots=True)
class Requester:
    """The turn, or other caller, on whose behalf a thread calls models.

    rank: the priority within its tenant's queue. The lower rank goes first.
    max_wait_s: how long a turn may wait for a permit while its time limit is paused. None for a caller that is not a
        turn's step: it waits within its own time.
    has_begun: whether the turn has a reply already. Its `max_wait_s` then no longer limits its wait.
    """

    rank: int = 2
    max_wait_s: float | None = None
    has_begun: bool = False

    @property
    def may_wait(self) -> bool:
        """Whether the caller may still wait for something that operators have paused."""
        return self.max_wait_s is None or self.max_wait_s >= 1.0


DEFAULT_REQUESTER = Requester()


class CallDeferred(ProviderError):
    """A model call that must be repeated after `wait_s` seconds, which is longer than its thread may be held.

    why: what the call waits for.
    ticket: its place in the model's queue, which the repeated call gets if it comes in time. None if it has no place.
    stop: the field of the stop that it waits for, or "".
    spends: the cost of requests that broke off before, at other models.
    """

    def __init__(
        self, message: str, why: str, wait_s: float, *, ticket: QueueTicket | None = None, stop: str = ""
    ) -> None:
        super().__init__(message, kind="limited", retryable=True)
        self.why, self.wait_s, self.ticket, self.stop = why, wait_s, ticket, stop
        self.spends: tuple[Spend, ...] = ()


class PermitDeferred(CallDeferred):
    """A call of a limited model whose permit comes later."""

    def __init__(self, model: str, wait: RateWait, ticket: QueueTicket | None = None) -> None:
        why = wait.describe(model)
        super().__init__(f"waits for {why}, {wait.wait_s:.0f} s", why, wait.wait_s, ticket=ticket)


class StopDeferred(CallDeferred):
    """A call that needs something that operators have paused. It waits until they resume it, or until its wait is
    over."""

    def __init__(self, stop: Stop, requester: Requester) -> None:
        wait_s = MAX_PAUSED_S if requester.max_wait_s is None else requester.max_wait_s
        super().__init__(stop.describe(), stop.describe(), wait_s, stop=stop.field)


class ModelForbidden(ProviderError):
    """A call that operators have forbidden, by its model, its brain or its tenant. It is not sent."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(stop.describe(), kind="forbidden", retryable=False)


def refuse_stopped(stop: Stop, requester: Requester) -> None:
    """Raise the error of a call that a stop concerns.

    Raises ModelForbidden, StopDeferred, or a ProviderError if the pause has lasted longer than the caller may wait.
    """
    if stop.mode == "forbid":
        raise ModelForbidden(stop)
    if not requester.may_wait:
        kind = "limited" if requester.has_begun else "waited"
        raise ProviderError(stop.describe(), kind=kind, retryable=True)
    raise StopDeferred(stop, requester)
