"""Waiting out trouble with Redis or SQL."""

from __future__ import annotations

import pytest

from brainq.contracts.encryption import ContentKeyMissing
from brainq.contracts.view import TurnView
from brainq.runtime import outage
from brainq.runtime.outage import LONGEST_S, NO_WAITING, OWNERSHIP_GRACE_S, OutagePolicy, OutageRetry
from tests.support.module_time import replace_time
from tests.unit.engine.turn.views import view


class Clock:
    """Time passes only while somebody waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.waits: list[float] = []
        replace_time(monkeypatch, outage, monotonic=lambda: self.now)

    def pause(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


class Away:
    """Fails `times` times with `failure`, then answers."""

    def __init__(self, times: int, failure: Exception | None = None) -> None:
        self.left = times
        self.failure = failure or ConnectionError("away")

    def __call__(self) -> str:
        if self.left:
            self.left -= 1
            raise self.failure
        return "done"


def is_away(failure: Exception) -> bool:
    return isinstance(failure, ConnectionError)


def trying(clock: Clock, of: TurnView | None = None) -> OutageRetry:
    return OutagePolicy(is_away, clock.pause).for_turn(of or view())


def test_what_works_at_once_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    assert trying(clock)(Away(0)) == "done"
    assert clock.waits == []


def test_waits_grow_to_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    assert trying(clock)(Away(7)) == "done"
    assert clock.waits == sorted(clock.waits)
    assert clock.waits[-1] == LONGEST_S


def test_it_gives_up_soon_after_the_turns_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    patient = trying(clock)
    with pytest.raises(ConnectionError):
        patient(Away(1_000_000))
    left_s = view().remaining_ms / 1000
    assert left_s < sum(clock.waits) < left_s + OWNERSHIP_GRACE_S


def test_what_is_no_trouble_of_ours_is_raised_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    with pytest.raises(ValueError, match="a bug"):
        trying(clock)(Away(1, ValueError("a bug")))
    assert clock.waits == []
    with pytest.raises(ConnectionError):
        NO_WAITING.for_turn(view())(Away(1))


def test_what_is_missing_is_named_in_the_log(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    missing = ContentKeyMissing("op-1", "put its line back")
    assert OutagePolicy(lambda _: True, Clock(monkeypatch).pause).for_turn(view())(Away(2, missing)) == "done"
    assert caplog.text.count("why=put its line back") == 1
