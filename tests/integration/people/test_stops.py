"""Stops over a real Redis: heard within a moment, also after the connection was killed."""

from __future__ import annotations

import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from brainq.adapters.redis.listener import PING_AFTER_S, RedisListener, RedisStopSignals
from brainq.app.devserver.redis_server import EmbeddedServer
from brainq.runtime.leases import LeaseRenewer
from brainq.runtime.observe import threads
from tests.support.refused_threads import REFUSED, RefusedThreads
from tests.support.server import RedisServer
from tests.support.wait import wait_until

CHANNEL = "bq:stops"


class Gaps:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


@pytest.fixture
def gaps() -> Gaps:
    return Gaps()


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """One of its own: here connections are killed by their kind, and counted."""
    server = RedisServer().start()
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def short_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brainq.adapters.redis.listener.READ_TIMEOUT_S", 0.05)


@pytest.fixture
def stops(server: RedisServer, gaps: Gaps) -> Iterator[RedisStopSignals]:
    stops = RedisStopSignals(server.url, CHANNEL, gaps)
    yield stops
    stops.close()
    wait_until(lambda: listeners(server) == 0, "it has hung up")


@pytest.fixture
def publish(server: RedisServer) -> Callable[..., int]:
    """Publishes a stop; returns how many listeners got it."""

    def publish(session_id: str, turn_id: str) -> int:
        return int(server.command("PUBLISH", CHANNEL, f"{session_id} {turn_id}")[0])

    return publish


def pings(server: RedisServer) -> int:
    """How many the server has answered."""
    found = re.search(r"cmdstat_ping:calls=(\d+)", "\n".join(server.command("INFO", "commandstats")))
    return int(found[1]) if found else 0


def listeners(server: RedisServer) -> int:
    return int(server.command("PUBSUB", "NUMSUB", CHANNEL)[1])


def test_every_watcher_of_the_turn_is_told_and_no_other(
    stops: RedisStopSignals, gaps: Gaps, publish: Callable[..., int]
) -> None:
    told: list[str] = []
    with (
        stops.watch("s1", "turn-1", lambda reason: told.append(f"first {reason}")),
        stops.watch("s1", "turn-1", lambda reason: told.append(f"second {reason}")),
        stops.watch("s1", "turn-2", lambda _: told.append("another turn")),
        stops.watch("s2", "turn-1", lambda _: told.append("another session")),
    ):
        wait_until(lambda: gaps.count, "it listens")
        assert publish("s1", "turn-1") == 1, "one connection for all of them"
        wait_until(lambda: len(told) == 2, "both are told")
    assert sorted(told) == ["first cancelled", "second cancelled"]


def test_what_cannot_be_done_any_more_because_its_process_ends_is_no_error(
    stops: RedisStopSignals, caplog: pytest.LogCaptureFixture
) -> None:
    def hang_up() -> None:
        stops.close()
        raise ConnectionError("the client is closed")

    notify: Any = vars(RedisListener)["_notify"]
    notify(stops, hang_up)
    assert caplog.records == []


def test_who_watches_no_more_is_not_told(stops: RedisStopSignals, gaps: Gaps, publish: Callable[..., int]) -> None:
    told: list[str] = []
    with stops.watch("s", "turn", lambda _: told.append("too late")):
        wait_until(lambda: gaps.count, "it listens")
    with stops.watch("s", "turn", told.append):
        publish("s", "turn")
        wait_until(lambda: told, "the one who still watches is told")
    assert told == ["cancelled"]


def test_a_listener_that_fails_keeps_nobody_from_being_told(
    stops: RedisStopSignals, gaps: Gaps, publish: Callable[..., int], caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []

    def fail(_: str) -> None:
        raise RuntimeError("the listener is broken")

    with stops.watch("s", "turn", fail), stops.watch("s", "turn", told.append):
        wait_until(lambda: gaps.count, "it listens")
        publish("s", "turn")
        wait_until(lambda: told, "the other one is told")
    assert "what was heard could not be done" in caplog.text


def test_it_is_silent_for_a_while_and_still_hears(
    stops: RedisStopSignals,
    gaps: Gaps,
    publish: Callable[..., int],
    server: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An answered ping keeps the connection; one that is not answered is a lost connection."""
    monkeypatch.setattr("brainq.adapters.redis.listener.PING_AFTER_S", 0.05)
    told: list[str] = []
    with stops.watch("s", "turn", told.append):
        wait_until(lambda: gaps.count, "it listens")
        before = pings(server)
        # It sends none before the last one is answered.
        wait_until(lambda: pings(server) >= before + 4, "several pings long nothing comes")
        publish("s", "turn")
        wait_until(lambda: told, "it is told")
    assert gaps.count == 1


def test_a_server_that_does_not_answer_is_a_gap(
    stops: RedisStopSignals, gaps: Gaps, server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brainq.adapters.redis.listener.PING_AFTER_S", 0.05)
    monkeypatch.setattr("brainq.adapters.redis.listener.DEAF_AFTER_S", 0.3)
    with stops.watch("s", "turn", lambda _: None):
        wait_until(lambda: gaps.count == 1, "it listens")
        server.command("CLIENT", "PAUSE", "1000", "ALL")
        wait_until(lambda: gaps.count == 2, "it has connected anew")


def test_after_a_killed_connection_it_listens_again(
    stops: RedisStopSignals, gaps: Gaps, server: RedisServer, publish: Callable[..., int]
) -> None:
    told: list[str] = []
    with stops.watch("s", "turn", told.append):
        wait_until(lambda: gaps.count == 1, "it listens")
        for killed in (1, 2, 3):
            assert server.command("CLIENT", "KILL", "TYPE", "pubsub") == ["1"], "the fault fired"
            began = time.monotonic()
            wait_until(lambda killed=killed: gaps.count == killed + 1, "it says that there was a gap")
            assert time.monotonic() - began < PING_AFTER_S
            assert publish("s", "turn") == 1
            wait_until(lambda killed=killed: len(told) == killed, "it is told again")


def test_a_stop_that_fell_into_a_gap_is_found_by_the_beats(server: RedisServer, publish: Callable[..., int]) -> None:
    cancelled, lost = threading.Event(), threading.Event()
    beaten = threading.Event()

    def beat() -> str:
        beaten.set()
        return "CLOSED" if cancelled.is_set() else "OK"

    beats = LeaseRenewer(every_s=600.0)
    stops = RedisStopSignals(server.url, CHANNEL, beats.beat_now)
    told: list[str] = []
    try:
        with beats.renew(beat, lambda _: lost.set()), stops.watch("s", "turn", told.append):
            assert beaten.wait(60), "what was published before it listened is a gap, too"
            assert server.command("CLIENT", "KILL", "TYPE", "pubsub") == ["1"], "the fault fired"
            cancelled.set()
            heard = publish("s", "turn")
            assert lost.wait(60.0), "not before the beat that was due in ten minutes"
            # The message and the beat come by two threads.
            wait_until(lambda: len(told) == heard, "what was heard is told")
    finally:
        stops.close()
        beats.stop()
        wait_until(lambda: listeners(server) == 0, "it has hung up")


def test_a_server_that_is_away_is_waited_for(gaps: Gaps, caplog: pytest.LogCaptureFixture) -> None:
    with tempfile.TemporaryDirectory(prefix="bq-") as directory:
        where = Path(directory)
        server = EmbeddedServer(where, unix_socket=where / "s", durable=False)
        stops = RedisStopSignals(f"unix://{where / 's'}?db=0", CHANNEL, gaps)
        try:
            with stops.watch("s", "turn", lambda _: None):
                wait_until(lambda: "listening for stops failed" in caplog.text, "it says so")
                assert gaps.count == 0
                server.start()
                wait_until(lambda: gaps.count == 1, "it listens")
        finally:
            stops.close()
            server.stop()


def test_closed_it_hangs_up(stops: RedisStopSignals, gaps: Gaps, server: RedisServer) -> None:
    with stops.watch("s", "turn", lambda _: None):
        wait_until(lambda: gaps.count, "it listens")
        stops.close()
        wait_until(lambda: listeners(server) == 0, "it has hung up")
    with stops.watch("s", "turn", lambda _: None):
        assert listeners(server) == 0


def test_a_refused_thread_is_started_by_the_next_who_watches(
    stops: RedisStopSignals, gaps: Gaps, publish: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "REFUSED_PAUSES_S", ())
    RefusedThreads(monkeypatch, "brainq-stops", 1)
    told: list[str] = []
    with pytest.raises(RuntimeError, match=REFUSED), stops.watch("s1", "t1", told.append):
        pytest.fail("nothing is watched")
    with stops.watch("s1", "t1", told.append):
        wait_until(lambda: gaps.count, "it listens")
        publish("s1", "t1")
        wait_until(lambda: told, "the stop is heard")
    assert told == ["cancelled"]


@pytest.mark.parametrize("end", [SystemExit, KeyboardInterrupt, MemoryError])
def test_whatever_a_watcher_raises_the_others_are_told(
    stops: RedisStopSignals, gaps: Gaps, publish: Callable[..., int], end: type[BaseException]
) -> None:
    told: list[str] = []

    def exits(reason: str) -> None:
        raise end

    with stops.watch("s1", "t1", exits), stops.watch("s1", "t1", told.append):
        wait_until(lambda: gaps.count, "it listens")
        for count in (1, 2):
            publish("s1", "t1")
            wait_until(lambda count=count: len(told) == count, "the other one is told")
    assert gaps.count == 1, "the connection was kept"
