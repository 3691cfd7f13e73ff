"""One thread renews every lease, in time or when it is told to."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest

from brainq.runtime.leases import LeaseRenewer
from brainq.runtime.observe import threads
from tests.support.refused_threads import REFUSED, RefusedThreads
from tests.support.wait import wait_until


@pytest.fixture
def beats() -> Iterator[LeaseRenewer]:
    """A beat would be due in ten minutes."""
    beats = LeaseRenewer(600.0)
    yield beats
    beats.stop()


class Lease:
    def __init__(self) -> None:
        self.beaten = 0
        self.word = "OK"
        self.lost: list[str] = []

    def beat(self) -> str:
        self.beaten += 1
        return self.word


def thread_names() -> list[str]:
    return [thread.name for thread in threading.enumerate()]


def test_all_leases_are_renewed_at_once_when_told(beats: LeaseRenewer) -> None:
    leases = [Lease(), Lease()]
    with beats.renew(leases[0].beat, leases[0].lost.append), beats.renew(leases[1].beat, leases[1].lost.append):
        for count in (1, 2):
            beats.beat_now()
            wait_until(lambda count=count: [lease.beaten for lease in leases] == [count, count], "both are renewed")
        leases[1].word = "CLOSED"
        beats.beat_now()
        wait_until(lambda: leases[1].lost, "the loss is told")
        beats.beat_now()
        wait_until(lambda: leases[0].beaten == 4, "the other one is still renewed")
    assert (leases[0].lost, leases[1].lost, leases[1].beaten) == ([], ["CLOSED"], 3)


def test_a_beat_that_failed_is_made_good_soon(beats: LeaseRenewer) -> None:
    lease = Lease()

    def swallowed() -> str:
        word = lease.beat()
        if lease.beaten == 1:
            raise ConnectionError
        return word

    with beats.renew(swallowed, lease.lost.append):
        beats.beat_now()
        wait_until(lambda: lease.beaten == 2, "the next would be due in ten minutes")
    assert lease.lost == []


def test_a_round_asked_for_during_a_round_follows_it(beats: LeaseRenewer) -> None:
    inside, go_on = threading.Event(), threading.Event()
    lease = Lease()

    def slow() -> str:
        inside.set()
        assert go_on.wait(60)
        return lease.beat()

    with beats.renew(slow, lease.lost.append):
        beats.beat_now()
        assert inside.wait(60)
        beats.beat_now()
        go_on.set()
        wait_until(lambda: lease.beaten == 2, "there was another round")


def test_told_before_there_is_a_lease_it_does_no_harm(beats: LeaseRenewer) -> None:
    beats.beat_now()
    lease = Lease()
    with beats.renew(lease.beat, lease.lost.append):
        wait_until(lambda: lease.beaten == 1, "the first lease is renewed at once")


def test_without_a_word_it_beats_in_time() -> None:
    before = thread_names().count("brainq-beats")
    beats, lease = LeaseRenewer(0.01), Lease()
    with beats.renew(lease.beat, lease.lost.append):
        wait_until(lambda: lease.beaten > 2, "it is renewed again and again")
    beats.stop()
    wait_until(lambda: thread_names().count("brainq-beats") <= before, "its thread has ended")


def test_a_holder_that_raises_when_it_hears_of_its_loss_costs_no_other_its_lease(beats: LeaseRenewer) -> None:
    other, lost = Lease(), Lease()
    lost.word = "CLOSED"

    def listener(word: str) -> None:
        lost.lost.append(word)
        raise RuntimeError("a tool's own listener")

    with beats.renew(lost.beat, listener), beats.renew(other.beat, other.lost.append):
        for count in (1, 2):
            beats.beat_now()
            wait_until(lambda count=count: other.beaten == count, "the other one is renewed")
    assert (lost.lost, lost.beaten) == (["CLOSED"], 1)


def test_one_refused_thread_costs_one_lease_and_the_next_one_is_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "REFUSED_PAUSES_S", ())
    RefusedThreads(monkeypatch, "brainq-beats", 1)
    beats, refused, lease = LeaseRenewer(600.0), Lease(), Lease()
    with pytest.raises(RuntimeError, match=REFUSED):
        beats.renew(refused.beat, refused.lost.append)
    with beats.renew(lease.beat, lease.lost.append):
        beats.beat_now()
        wait_until(lambda: lease.beaten == 1, "it is renewed")
    assert refused.beaten == 0, "nothing began under that lease"
    beats.stop()


@pytest.mark.parametrize("end", [SystemExit, MemoryError, GeneratorExit])
def test_whatever_one_beat_raises_the_other_leases_are_renewed(beats: LeaseRenewer, end: type[BaseException]) -> None:
    other = Lease()

    def beat() -> str:
        raise end

    with beats.renew(beat, other.lost.append), beats.renew(other.beat, other.lost.append):
        for count in (1, 2):
            beats.beat_now()
            wait_until(lambda count=count: other.beaten >= count, "the other one is renewed")


def test_a_holder_that_exits_when_it_hears_of_its_loss_ends_no_thread(beats: LeaseRenewer) -> None:
    lost, other = Lease(), Lease()
    lost.word = "CLOSED"
    with beats.renew(lost.beat, sys.exit), beats.renew(other.beat, other.lost.append):
        beats.beat_now()
        wait_until(lambda: other.beaten == 1, "the other one is renewed in the same round")
