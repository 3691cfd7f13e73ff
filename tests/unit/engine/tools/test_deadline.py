"""The token a tool watches."""

from __future__ import annotations

import asyncio
import math
import threading
import time

import pytest

from brainq.engine.tools.deadline import DeadlineToken


def test_a_token_expires_in_so_many_seconds() -> None:
    token = DeadlineToken(30.0)

    assert 0 < token.remaining_s <= 30.0
    assert not token.is_expired
    assert token.reason == ""


def test_time_that_is_up_expires_it() -> None:
    token = DeadlineToken(0)

    assert (token.is_expired, token.is_cancelled, token.reason) == (True, False, "deadline")
    assert token.remaining_s == 0.0
    assert token.wait(60.0)


def test_the_first_cancel_stays() -> None:
    token = DeadlineToken(60)

    token.cancel("the user said stop")
    token.cancel("again")

    assert (token.is_expired, token.is_cancelled, token.reason) == (True, True, "the user said stop")
    assert token.remaining_s == 0.0


def test_wait_ends_at_the_deadline() -> None:
    started = time.monotonic()
    assert DeadlineToken(0.02).wait(60.0)
    assert time.monotonic() - started < 30.0


def test_wait_that_ends_early_says_there_is_time_left() -> None:
    assert not DeadlineToken(60.0).wait(0.001)


def test_cancel_wakes_a_waiting_thread() -> None:
    token = DeadlineToken(60.0)
    answers: list[bool] = []
    waiting = threading.Thread(target=lambda: answers.append(token.wait(60.0)))
    waiting.start()
    token.cancel("stop")
    waiting.join(60)
    assert answers == [True]


def test_cancel_from_another_thread_wakes_a_waiting_task() -> None:
    token = DeadlineToken(60.0)

    async def wait() -> bool:
        threading.Thread(target=token.cancel, args=("stop",)).start()
        return await token.wait_async(60.0)

    assert asyncio.run(asyncio.wait_for(wait(), 10.0))


def test_wait_async_ends_at_the_deadline() -> None:
    assert asyncio.run(DeadlineToken(0.01).wait_async(60.0))
    assert not asyncio.run(DeadlineToken(60.0).wait_async(0.001))


def test_its_end_may_be_known_later() -> None:
    token = DeadlineToken(math.inf)
    assert not token.is_expired
    token.ends_at = time.monotonic() + 60.0
    assert 0 < token.remaining_s <= 60.0
    token.ends_at = time.monotonic()
    assert token.is_expired


def test_a_cancel_before_its_end_is_known_stands() -> None:
    token = DeadlineToken(math.inf)
    token.cancel("stop")
    token.ends_at = time.monotonic() + 60.0
    assert (token.is_expired, token.reason) == (True, "stop")


def test_listeners_are_called_once_and_can_be_taken_away() -> None:
    token = DeadlineToken(60.0)
    heard: list[str] = []
    token.on_cancel(lambda: heard.append("stays"))
    remove = token.on_cancel(lambda: heard.append("removed"))
    remove()
    remove()

    token.cancel("a")
    token.cancel("b")
    token.on_cancel(lambda: heard.append("too late, so at once"))

    assert heard == ["stays", "too late, so at once"]


def test_a_listener_that_raises_keeps_no_other_from_being_called() -> None:
    token, heard = DeadlineToken(60.0), list[str]()

    def raises() -> None:
        raise RuntimeError("mine")

    token.on_cancel(raises)
    token.on_cancel(lambda: heard.append("the engine's"))
    with pytest.raises(RuntimeError, match="mine"):
        token.cancel()
    assert (token.is_cancelled, heard) == (True, ["the engine's"])
