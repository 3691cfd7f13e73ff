"""Waiting for a condition, instead of sleeping."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from brainq.errors import Unreachable

T = TypeVar("T")


def insist(ask: Callable[[], T], timeout_s: float = 60.0) -> T:
    """Return the result of `ask`, which is called again while Redis or SQL cannot be reached."""
    end = time.monotonic() + timeout_s
    while True:
        try:
            return ask()
        except Unreachable:
            if time.monotonic() >= end:
                raise
            time.sleep(0.05)


def wait_until(predicate: Callable[[], T], description: str, timeout_s: float = 60.0, every_s: float = 0.01) -> T:
    """Call `predicate` until it returns something true, and return that.

    Fails the test with `description` and the last value after `timeout_s` of monotonic time.
    """
    end = time.monotonic() + timeout_s
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() >= end:
            raise AssertionError(f"waited {timeout_s:g} s in vain: {description} (last value: {value!r})")
        time.sleep(every_s)
