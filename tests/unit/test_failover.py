"""Connections to a primary that was replaced are cut, and none is opened to it again."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from brainq.runtime import failover
from brainq.runtime.failover import FollowsFailover, PrimaryConnections

A, B = ("10.0.0.1", 6379), ("10.0.0.2", 6379)


class Managed:
    """Stands for redis-py's SentinelManagedConnection."""

    def __init__(self) -> None:
        self.host, self.port = "", 0
        self._sock: socket.socket | None = None
        self.far: socket.socket | None = None

    def connect_to(self, address: tuple[str, int]) -> None:
        self.host, self.port = address
        self._sock, self.far = socket.socketpair()
        self.far.settimeout(5)

    def disconnect(self) -> None:
        for end in (self._sock, self.far):
            if end is not None:
                end.close()
        self._sock = self.far = None


class Connection(FollowsFailover, Managed):
    @property
    def is_cut(self) -> bool:
        assert self.far is not None
        self.far.setblocking(False)
        try:
            return self.far.recv(1) == b""
        except BlockingIOError:
            return False


OPEN: list[Connection] = []


@pytest.fixture
def primaries(monkeypatch: pytest.MonkeyPatch) -> Iterator[PrimaryConnections]:
    made = PrimaryConnections()
    monkeypatch.setattr(failover, "PRIMARIES", made)
    yield made
    while OPEN:
        OPEN.pop().disconnect()


def connected(address: tuple[str, int]) -> Connection:
    OPEN.append(Connection())
    OPEN[-1].connect_to(address)
    return OPEN[-1]


def test_all_connections_to_the_old_primary_are_cut_and_no_others(primaries: PrimaryConnections) -> None:
    old, another, new = connected(A), connected(A), connected(B)
    assert primaries.replace(A, B) == 2
    assert (old.is_cut, another.is_cut, new.is_cut) == (True, True, False)


def test_a_sentinel_that_still_names_the_old_one_is_not_believed(primaries: PrimaryConnections) -> None:
    primaries.replace(A, B)
    assert connected(A).host == B[0]
    primaries.replace(B, A)
    assert connected(A).host == A[0]
    assert connected(B).host == A[0]


def test_one_that_was_about_to_connect_ends_at_the_new_primary(
    primaries: PrimaryConnections, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect_to = Managed.connect_to

    def switched_meanwhile(self: Managed, address: tuple[str, int]) -> None:
        connect_to(self, address)
        primaries.replace(A, B)

    monkeypatch.setattr(Managed, "connect_to", switched_meanwhile)
    assert connected(A).host == B[0]
