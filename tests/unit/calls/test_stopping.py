"""A stop reaches the token, whichever of the two comes first."""

from __future__ import annotations

import threading

from brainq.calls.stopping import StopLatch
from brainq.tools.deadline import DeadlineToken


def test_a_stop_before_the_token_is_kept_for_it() -> None:
    latch, token = StopLatch(), DeadlineToken(60.0)
    latch.stop("cancelled")
    latch.guard(token)
    assert (token.is_expired, token.reason) == (True, "cancelled")


def test_a_stop_after_it_cancels_it() -> None:
    latch, token = StopLatch(), DeadlineToken(60.0)
    latch.guard(token)
    assert not token.is_expired
    latch.stop("cancelled")
    assert token.is_cancelled


def test_at_the_same_moment_it_is_not_missed_either() -> None:
    for _ in range(300):
        latch, token = StopLatch(), DeadlineToken(60.0)
        both = threading.Barrier(2)

        def stop(latch: StopLatch = latch, both: threading.Barrier = both) -> None:
            both.wait(60)
            latch.stop("cancelled")

        stopping = threading.Thread(target=stop)
        stopping.start()
        both.wait(60)
        latch.guard(token)
        stopping.join()
        assert token.is_cancelled
