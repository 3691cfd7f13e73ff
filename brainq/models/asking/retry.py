"""The time of one model call: its deadline, how long its stream may be silent, and retries inside it.

A retry waits as long as the service asked (Retry-After), else exponentially with full jitter, and is never
begun when its wait would reach past the deadline: the caller learns at once instead.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TypeVar

from brainq.contracts.model import ModelChunk, ModelRequest, ModelRetry
from brainq.errors import ProviderError

T = TypeVar("T")
Clock = Callable[[], float]


class Deadline:
    """Counts `timeout_s` seconds of monotonic time from its making."""

    def __init__(self, timeout_s: float, clock: Clock = time.monotonic) -> None:
        self.timeout_s = timeout_s
        self._clock = clock
        self._ends_at = clock() + timeout_s

    def remaining_s(self) -> float:
        """Seconds left, never below 0."""
        return max(0.0, self._ends_at - self._clock())

    @property
    def passed(self) -> bool:
        return self._clock() >= self._ends_at

    def error(self, last: ProviderError | None = None) -> ProviderError:
        """What to raise once the time is over; `last` is the failure that used it up, and is named."""
        why = f" (the last try: {last})" if last else ""
        return ProviderError(
            f"the model did not answer within {self.timeout_s:g} s{why}", kind="timeout", retryable=True
        )


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


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how long to wait. `clock`, `sleep` and `draw` (0 to 1) are there for tests.

    max_attempts   attempts in all; a fleet that retries more than this makes an outage worse
    first_s        upper bound of the first wait; it doubles up to `longest_s`
    """

    max_attempts: int = 8
    first_s: float = 0.5
    longest_s: float = 20.0
    clock: Clock = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    draw: Callable[[], float] = random.random

    def wait_s(self, attempt: int, retry_after_s: float | None) -> float:
        """Seconds to wait after attempt number `attempt` (1-based) failed."""
        if retry_after_s:
            # Never less than asked; a little more, so that a fleet does not return at the same moment.
            return retry_after_s + self.draw() * min(retry_after_s * 0.1, 1.0)
        return self.draw() * min(self.longest_s, self.first_s * 2 ** (attempt - 1))


def call_with_retry(attempt: Callable[[], T], deadline: Deadline, policy: RetryPolicy) -> T:
    """Run `attempt` until it returns, fails for good, or no further wait fits before the deadline.

    A stalled stream is not begun again here: the service may have worked on it, so the caller counts another
    attempt. Nor is a call whose permit comes later (`limited`): the caller gives its thread back meanwhile.

    Raises the last ProviderError as it was, or one of kind `timeout` if the deadline has passed.
    """
    tries = _AttemptCounter(deadline, policy)
    while True:
        tries.begin()
        try:
            return attempt()
        except ProviderError as error:
            retry = tries.next_retry(error)
        policy.sleep(retry.wait_s)


class _AttemptCounter:
    """Counts the attempts of one call, and decides whether there is another."""

    def __init__(self, deadline: Deadline, policy: RetryPolicy) -> None:
        self._deadline = deadline
        self._policy = policy
        self._number = 0
        self._last: ProviderError | None = None

    def begin(self) -> None:
        if self._deadline.passed:
            raise self._deadline.error(self._last) from self._last
        self._number += 1

    def next_retry(self, error: ProviderError) -> ModelRetry:
        """The next attempt after this failure. Raises it when there is none."""
        self._last = error
        if not error.retryable or error.kind in ("stalled", "limited"):
            raise error
        if self._deadline.passed:
            raise self._deadline.error(error) from error
        # Where the fleet waits for what the service asked, the next attempt waits for its place, and not twice.
        is_shared = getattr(error, "is_shared", False)
        retry_after_s = getattr(error, "retry_after_s", None)
        wait_s = 0.0 if is_shared else self._policy.wait_s(self._number, retry_after_s)
        if self._number >= self._policy.max_attempts or wait_s >= self._deadline.remaining_s():
            raise error
        return ModelRetry(kind=error.kind, wait_s=wait_s)


def stream_with_retry(
    attempt: Callable[[], Generator[ModelChunk]], deadline: Deadline, policy: RetryPolicy
) -> Iterator[ModelChunk]:
    """Chunks of the first attempt that gets as far as a chunk; before them one for each retry, before its wait.

    `attempt` begins a stream. An empty ModelChunk from it says that output has begun without text (a tool
    call) and is not passed on. After a first chunk of either sort nothing is restarted here, because the
    output was paid for and may have been shown: a retryable failure becomes kind `stream`.
    """
    tries = _AttemptCounter(deadline, policy)
    while True:
        tries.begin()
        chunks = attempt()
        try:
            first = next(chunks, None)
            break
        except ProviderError as error:
            retry = tries.next_retry(error)
        yield ModelChunk(retry=retry)
        policy.sleep(retry.wait_s)
    try:
        chunk = first
        while chunk is not None:
            if chunk.text or chunk.reasoning or chunk.reply is not None:
                yield chunk
            if chunk.reply is None and deadline.passed:
                raise deadline.error()
            chunk = next(chunks, None)
    except ProviderError as error:
        if not error.retryable or error.kind in ("timeout", "stalled"):
            raise
        if deadline.passed:
            raise deadline.error() from error
        raise ProviderError(f"the stream broke off: {error}", kind="stream", retryable=True) from error
    finally:
        chunks.close()
