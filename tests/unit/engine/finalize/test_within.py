"""A function that must come back in time."""

from __future__ import annotations

import contextvars
import threading

import pytest

from brainq.runtime.processes.threads import call_within


def test_it_returns_and_raises_what_the_function_does() -> None:
    assert call_within(5, "a part", lambda: 7) == 7
    assert call_within(5, "a part", lambda: None) is None
    with pytest.raises(ZeroDivisionError):
        call_within(5, "a part", lambda: 1 // 0)


def test_an_exit_is_an_error_of_the_part() -> None:
    def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(RuntimeError, match="a part raised SystemExit: 3"):
        call_within(5, "a part", leave)


def test_a_function_that_hangs_is_abandoned() -> None:
    release, over = threading.Event(), threading.Event()

    def hang() -> None:
        release.wait(30)
        over.set()

    with pytest.raises(TimeoutError, match=r"a part did not return within 0\.05 s"):
        call_within(0.05, "a part", hang)
    release.set()
    assert over.wait(60), "its end disturbs nobody"


def test_the_callers_context_goes_along() -> None:
    colour = contextvars.ContextVar("colour", default="none")
    colour.set("red")
    assert call_within(5, "a part", colour.get) == "red"
