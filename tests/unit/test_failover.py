"""Connections to a primary that was replaced are cut, and none is opened to it again."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from brainq.runtime import failover
from brainq.runtime.failover import FollowsFailover, PrimaryConnections
from tests.support.module_time import replace_time

MASTER = "themaster"
A, B = ("10.0.0.1", 6379), ("10.0.0.2", 6379)


class Managed:
    """Stands for redis-py's SentinelManagedConnection."""

    def __init__(self) -> None:
        self.host, self.port = "", 0
        self.connection_pool = SimpleNamespace(service_name=MASTER)
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
    assert primaries.replace(MASTER, A, B, 60) == 2
    assert (old.is_cut, another.is_cut, new.is_cut) == (True, True, False)


def test_connections_of_another_service_to_the_same_server_stay(primaries: PrimaryConnections) -> None:
    """A node of a cluster may be the primary of several cells' slots, of which one moves away."""
    of_another_slot, moved = connected(A), connected(A)
    of_another_slot.connection_pool.service_name = "slot 7"
    assert primaries.replace(MASTER, A, B, 60) == 1
    assert (of_another_slot.is_cut, moved.is_cut) == (False, True)
    assert primaries.successor("slot 7", A) == A
    assert primaries.successor(MASTER, A) == B


def test_a_sentinel_that_still_names_the_old_one_is_not_believed(primaries: PrimaryConnections) -> None:
    primaries.replace(MASTER, A, B, 60)
    assert connected(A).host == B[0]
    primaries.replace(MASTER, B, A, 60)
    assert connected(A).host == A[0]
    assert connected(B).host == A[0]


def test_one_that_was_about_to_connect_ends_at_the_new_primary(
    primaries: PrimaryConnections, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect_to = Managed.connect_to

    def switched_meanwhile(self: Managed, address: tuple[str, int]) -> None:
        connect_to(self, address)
        primaries.replace(MASTER, A, B, 60)

    monkeypatch.setattr(Managed, "connect_to", switched_meanwhile)
    assert connected(A).host == B[0]


def test_a_change_that_was_missed_is_believed_in_the_end(
    primaries: PrimaryConnections, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old primary may be the primary again, of which this process never heard."""
    now_s = [100.0]
    replace_time(monkeypatch, failover, monotonic=lambda: now_s[0])
    primaries.replace(MASTER, A, B, 15)
    now_s[0] = 114.9
    assert connected(A).host == B[0]
    now_s[0] = 115.1
    assert connected(A).host == A[0]
