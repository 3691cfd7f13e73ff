"""The pace of a stream: how long it may be silent, until its first output and between two pieces."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from brainq.contracts.model import ModelRequest
from brainq.errors import ProviderError
from brainq.models.asking.retry import Clock, Deadline

F = TypeVar("F", bound=Callable[..., Any])


class Pace:
    """The time one stream has for its next piece. Counts `first_token_s` from its making.

    A pause after the first output that is longer than the first one may be is a stall, too, so `idle_s` never
    counts for more than `first_token_s`.
    """

    def __init__(
        self,
        deadline: Deadline,
        first_token_s: float | None = None,
        idle_s: float | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        self.deadline = deadline
        self._clock = clock
        self._first = None if first_token_s is None else Deadline(first_token_s, clock)
        limits = [limit for limit in (first_token_s, idle_s) if limit is not None]
        self._idle_s = min(limits) if limits and idle_s is not None else None
        self._begun = False

    @classmethod
    def for_request(cls, request: ModelRequest, deadline: Deadline, clock: Clock = time.monotonic) -> Pace:
        return cls(deadline, request.first_token_s, request.idle_s, clock)

    def restart_first(self) -> None:
        """The request goes out only now, after it waited for its place: from here on its first output is waited for."""
        if self._first is not None:
            self._first = Deadline(self._first.timeout_s, self._clock)

    def begin(self) -> None:
        """The first output is there: from now on pauses count."""
        self._begun = True

    def allowed_s(self) -> float:
        """Seconds until the next piece must be there."""
        remaining_s = self.deadline.remaining_s()
        if self._begun:
            return remaining_s if self._idle_s is None else min(remaining_s, self._idle_s)
        return remaining_s if self._first is None else min(remaining_s, self._first.remaining_s())

    @property
    def first_is_late(self) -> bool:
        """Whether the first output should have been there by now, though there is time left."""
        return not self._begun and self._first is not None and self._first.passed and not self.deadline.passed

    def error(self, name: str) -> ProviderError:
        """What to raise when `allowed_s` is over: `timeout` at the deadline, else `stalled`."""
        if self.deadline.passed:
            return self.deadline.error()
        limit_s = self._idle_s if self._begun else self._first and self._first.timeout_s
        what = "no more of the reply" if self._begun else "nothing of the reply"
        return ProviderError(
            f"{name}: the stream stalled: {what} came within {limit_s or 0:g} s", kind="stalled", retryable=True
        )


def keeps_limits(method: F) -> F:
    """Marks a `generate_stream` that holds `timeout_s`, `first_token_s` and `idle_s` itself. One that overrides it
    does not carry the mark."""
    setattr(method, "keeps_limits", True)  # noqa: B010 (a function has no such attribute by its type)
    return method
