"""A write starts when replicas have what led to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import redis
from redis.exceptions import NoPermissionError

from brainq.adapters.redis import failover
from brainq.adapters.redis.failover import ReplicaAcks
from brainq.runtime import outage
from tests.support.stand_in import stand_in


class Primary:
    """Stands for the scripts, and for a call of one: `replicas` are connected, of which `slow` acknowledge nothing in
    time."""

    def __init__(self, replicas: int, slow: int = 0, history: str = "a") -> None:
        self.replicas, self.slow, self.history = replicas, slow, history
        self.waited: list[int] = []

    @property
    def info(self) -> str:
        return f"role:master\r\nconnected_slaves:{self.replicas}\r\nmaster_replid:{self.history}\r\n"

    def read(self, commands: Sequence[Any]) -> list[str]:
        return [self.info]

    def with_reads(self, reads: Sequence[Any]) -> tuple[str, list[Any]]:
        self.waited.append(reads[0][1])
        return "OK", [self.replicas - self.slow, self.info]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(failover, "time", made)
    monkeypatch.setattr(outage, "time", made)
    return made


def acks(primary: Primary, patience_s: float = 0.0) -> ReplicaAcks:
    return ReplicaAcks(stand_in(primary), patience_s)


@pytest.mark.parametrize(("replicas", "wanted"), [(0, 0), (1, 1), (2, 1), (3, 2), (5, 3)])
def test_most_replicas_must_have_it(replicas: int, wanted: int) -> None:
    primary = Primary(replicas)
    assert acks(primary).acknowledged(stand_in(primary)) == "OK"
    assert primary.waited == [wanted]


class Managed(Primary):
    """A primary of a service that does not permit WAIT."""

    refusal: redis.ResponseError = NoPermissionError("no permissions to run the 'wait' command")

    def with_reads(self, reads: Sequence[Any]) -> tuple[str, list[Any]]:
        return "OK", [self.refusal, self.info]


def test_it_starts_if_nobody_may_wait_for_replicas() -> None:
    primary = Managed(1)
    assert acks(primary).acknowledged(stand_in(primary)) == "OK"
    primary.refusal = redis.ResponseError("MISCONF it cannot write to its disk")
    with pytest.raises(redis.ResponseError, match="MISCONF"):
        acks(primary).acknowledged(stand_in(primary))


def test_it_does_not_start_while_too_few_have_it() -> None:
    primary = Primary(1, slow=1)
    with pytest.raises(redis.ConnectionError, match="0 replicas have it, 1 must"):
        acks(primary).acknowledged(stand_in(primary))


def test_a_replica_that_goes_is_missed_for_a_while(clock: Clock) -> None:
    """It may have been promoted: then this primary is none, and hears so meanwhile."""
    primary = Primary(1)
    starts = acks(primary)
    starts.acknowledged(stand_in(primary))
    primary.replicas = 0
    with pytest.raises(redis.ConnectionError):
        starts.acknowledged(stand_in(primary))
    clock.now += failover.MISSED_FOR_S + 1
    with pytest.raises(redis.ConnectionError):
        starts.acknowledged(stand_in(primary))
    assert starts.acknowledged(stand_in(primary)) == "OK"


def test_another_primary_is_asked_for_its_own_replicas() -> None:
    primary = Primary(1)
    starts = acks(primary, patience_s=1.0)
    starts.acknowledged(stand_in(primary))
    primary.replicas, primary.history = 0, "b"
    assert starts.acknowledged(stand_in(primary)) == "OK"
    assert primary.waited == [1, 1, 0]
