"""How long a stream may say nothing, and the cut that follows."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import closing
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from brainq.contracts.turn import Limits, LimitsOverride
from brainq.engine.models.asking import stall_clock
from brainq.engine.models.asking.stall_clock import Deadline, DeadlineCut, StallClock
from brainq.runtime.observe import threads
from brainq.runtime.processes.timers import TIMERS, Watch, Watchdog
from tests.support.refused_threads import REFUSED, RefusedThreads
from tests.support.wait import wait_until


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def pace(clock: Clock, timeout_s: float, first_token_s: float | None, idle_s: float | None) -> StallClock:
    return StallClock(Deadline(timeout_s, clock), first_token_s, idle_s)


def test_the_first_output_has_a_time_of_its_own_and_each_pause_one() -> None:
    clock = Clock()
    stream = pace(clock, 60, 10, 4)
    clock.now += 3
    assert stream.allowed_s() == 7
    stream.begin()
    assert stream.allowed_s() == 4
    clock.now += 40
    assert stream.allowed_s() == 4, "a long stream is none that stalls"
    clock.now += 15
    assert stream.allowed_s() == 2, "but it never reaches past the deadline"


def test_without_limits_the_deadline_alone_counts() -> None:
    clock = Clock()
    stream = pace(clock, 60, None, None)
    assert stream.allowed_s() == 60
    stream.begin()
    assert stream.allowed_s() == 60
    assert not stream.first_is_late


def test_a_pause_is_never_longer_than_the_first_output_may_take() -> None:
    stream = pace(Clock(), 60, 5, 20)
    stream.begin()
    assert stream.allowed_s() == 5


def test_what_is_raised() -> None:
    clock = Clock()
    stream = pace(clock, 60, 10, 4)
    clock.now += 11
    assert stream.first_is_late
    error = stream.error("openai")
    assert (error.kind, error.retryable) == ("stalled", True)
    assert str(error) == "openai: the stream stalled: nothing of the reply came within 10 s"
    stream.begin()
    assert not stream.first_is_late
    assert str(stream.error("openai")) == "openai: the stream stalled: no more of the reply came within 4 s"
    clock.now += 50
    assert stream.error("openai").kind == "timeout"


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair()
    with one, other:
        yield one, other


def response_on(connection: socket.socket) -> Any:
    def get_extra_info(_: str) -> socket.socket:
        return connection

    stream = SimpleNamespace(get_extra_info=get_extra_info)
    return SimpleNamespace(extensions={"network_stream": stream})


def test_a_cut_moves_earlier_and_later(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, _ = pair
    with closing(DeadlineCut(response_on(ours), 0.05)) as cutoff:
        cutoff.move(60.0)
        rung = Event()
        TIMERS.add(Watch(time.monotonic() + 0.1, rung.set))
        assert rung.wait(60)  # the first time is over
        assert not cutoff.fired
        cutoff.move(0.01)
        wait_until(lambda: cutoff.fired, "the socket is shut down")
        assert ours.recv(1) == b""


def test_a_cut_that_stays_where_it_is_sets_no_timer_again(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    moved: list[float] = []
    deadline = Deadline(60.0)
    with closing(DeadlineCut(response_on(pair[0]), deadline.remaining_s())) as cutoff:
        monkeypatch.setattr(TIMERS, "move", lambda _, due: moved.append(due))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
        for _ in range(1000):
            cutoff.move(deadline.remaining_s())
        assert len(moved) < 10, "only where this thread was held up"
        cutoff.move(30.0)
        assert moved


def test_the_last_time_holds(pair: tuple[socket.socket, socket.socket]) -> None:
    with closing(DeadlineCut(response_on(pair[0]), 60.0)) as cutoff:
        cutoff.finish_within(0.05)
        cutoff.move(60.0)
        wait_until(lambda: cutoff.fired, "the socket is shut down")


def test_a_turn_sets_its_own() -> None:
    limits = LimitsOverride(first_token_s=5).applied_to(Limits(idle_s=7))
    assert (limits.first_token_s, limits.idle_s) == (5, 7)
    with pytest.raises(ValueError, match="idle_s"):
        Limits(idle_s=0)


def test_no_stream_is_read_that_could_not_be_cut(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, _ = pair
    monkeypatch.setattr(threads, "REFUSED_PAUSES_S", ())
    timers = Watchdog("brainq-test-timers")
    monkeypatch.setattr(stall_clock, "TIMERS", timers)
    refused = RefusedThreads(monkeypatch, "brainq-test-timers", 1)
    with pytest.raises(RuntimeError, match=REFUSED):
        DeadlineCut(response_on(ours), 0.01)
    with closing(DeadlineCut(response_on(ours), 600.0)) as cutoff:
        monkeypatch.setattr(timers._thread, "_thread", None)  # as if it had died  # pyright: ignore[reportPrivateUsage]
        refused.times = 1
        with pytest.raises(RuntimeError, match=REFUSED):
            cutoff.move(0.01)
        cutoff.move(0.01)
        wait_until(lambda: cutoff.fired, "the next move is done")
    timers.close()
