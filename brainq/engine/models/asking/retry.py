"""Retries inside one model call, within its deadline.

A retry waits as long as the service asked (Retry-After), or else exponentially with full jitter. It is not begun if its
wait would reach past the deadline: the caller then gets the error at once.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TypeVar

from brainq.contracts.model import ModelChunk, ModelRetry
from brainq.engine.models.asking.stall_clock import Clock, Deadline
from brainq.errors import ProviderError

T = TypeVar("T")
NEVER_RETRIED_HERE = frozenset({"stalled", "broken", "limited"})
"""The kinds of failure after which the caller decides. The service may have worked on a `stalled` or `broken` request,
and a `limited` request waits for its permit."""


class ServiceError(ProviderError):
    """A failure that a service has reported.

    retry_after_s: how many seconds the service asked us to wait, or None if it did not say.
    is_shared: whether the whole fleet waits for that. The next request then waits for its permit.
    """

    is_shared = False

    def __init__(self, message: str, *, kind: str, retryable: bool, retry_after_s: float | None = None) -> None:
        super().__init__(message, kind=kind, retryable=retryable)
        self.retry_after_s = retry_after_s


@dataclass(frozen=True)
class RetryPolicy:
    """How often a call is retried, and how long it waits. `clock`, `sleep` and `draw` (0 to 1) are there for tests.

    max_attempts: the maximum number of attempts. A fleet that retries more often makes an outage worse.
    first_s: the upper bound of the first wait, which doubles up to `longest_s`.
    """

    max_attempts: int = 8
    first_s: float = 0.5
    longest_s: float = 20.0
    clock: Clock = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    draw: Callable[[], float] = random.random

    def wait_s(self, attempt: int, retry_after_s: float | None) -> float:
        """Return the seconds to wait after attempt number `attempt`, counted from 1, has failed."""
        if retry_after_s:
            # Never wait less than asked; wait a little more, so that a fleet does not return at the same moment.
            return retry_after_s + self.draw() * min(retry_after_s * 0.1, 1.0)
        return self.draw() * min(self.longest_s, self.first_s * 2 ** (attempt - 1))


def call_with_retry(attempt: Callable[[], T], deadline: Deadline, policy: RetryPolicy) -> T:
    """Run `attempt` until it returns, fails for good, or no further wait fits before the deadline.

    A stalled stream, or a reply that its service found broken, is not requested again here: the service may have worked
    on it, so the caller counts another attempt. A call whose permit comes later (`limited`) is not repeated either: the
    caller releases its thread.

    Raises the last ProviderError, or one of kind `timeout` if the deadline has passed.
    """
    number, last = 0, None
    while True:
        deadline.require(last)
        number += 1
        try:
            return attempt()
        except ProviderError as error:
            last = error
            retry = _next_retry(error, number, deadline, policy)
        policy.sleep(retry.wait_s)


def _next_retry(error: ProviderError, number: int, deadline: Deadline, policy: RetryPolicy) -> ModelRetry:
    """Return the retry after attempt `number` has failed. Raises the error if there is none."""
    if not error.retryable or error.kind in NEVER_RETRIED_HERE:
        raise error
    deadline.require(error)
    # If the fleet waits as the service asked, the next attempt waits for its permit, and does not wait here, too.
    is_shared = getattr(error, "is_shared", False)
    wait_s = 0.0 if is_shared else policy.wait_s(number, getattr(error, "retry_after_s", None))
    if number >= policy.max_attempts or wait_s >= deadline.remaining_s():
        raise error
    return ModelRetry(kind=error.kind, wait_s=wait_s)


def stream_with_retry(
    attempt: Callable[[], Generator[ModelChunk]], deadline: Deadline, policy: RetryPolicy
) -> Iterator[ModelChunk]:
    """Yield the chunks of the first attempt that has output, and before it a chunk for each retry, before its wait.

    attempt: begins a stream. An empty ModelChunk from it means that output without text (a tool call) has begun, and is
        not passed on. After the first chunk nothing is restarted here, because the output is billed and may have been
        shown. A retryable failure then gets the kind `stream`.
    """
    number, last = 0, None
    while True:
        deadline.require(last)
        number += 1
        chunks = attempt()
        try:
            chunk = next(chunks, None)
            break
        except ProviderError as error:
            last = error
            retry = _next_retry(error, number, deadline, policy)
        yield ModelChunk(retry=retry)
        policy.sleep(retry.wait_s)
    try:
        while chunk is not None:
            if chunk.text or chunk.reasoning or chunk.reply is not None:
                yield chunk
            if chunk.reply is None:
                deadline.require()
            chunk = next(chunks, None)
    except ProviderError as error:
        if not error.retryable or error.kind in ("timeout", "stalled", "broken"):
            raise
        deadline.require(error)
        raise ProviderError(f"the stream broke off: {error}", kind="stream", retryable=True) from error
    finally:
        chunks.close()
