"""A child whose answers cannot be read is given up: whoever waits for one is told, and nothing outlives its owner."""

from __future__ import annotations

import itertools
import socket
from concurrent.futures import Future
from typing import Any, cast

import pytest

from brainq.engine.calls import tool_processes
from brainq.runtime.observe import threads
from brainq.runtime.processes import quarantine_pool
from brainq.runtime.processes.child import FrameLostError
from brainq.runtime.processes.quarantine_pool import ChildProcess
from tests.support.refused_threads import REFUSED, RefusedThreads


class FakeChild(ChildProcess):
    """One whose process and socket are the test's."""

    def __init__(self, how: list[str]) -> None:
        self._on_gone = how.append
        self.answers: Future[dict[str, Any]] = Future()
        self._lock = quarantine_pool.threading.Lock()
        self._pending = {1: self.answers}
        self._numbers = itertools.count(2)
        self._is_gone = False
        self.sock, self.theirs = socket.socketpair()

    def describe_end(self) -> str:
        return "hung up"


@pytest.mark.parametrize("failure", [KeyError("id"), MemoryError(), SystemExit(3), FrameLostError("gone")])
def test_who_waits_for_an_answer_is_told(monkeypatch: pytest.MonkeyPatch, failure: BaseException) -> None:
    def receive(sock: socket.socket) -> Any:
        raise failure

    monkeypatch.setattr(quarantine_pool, "receive_frame", receive)
    how: list[str] = []
    child = FakeChild(how)
    child._read()  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(FrameLostError):
        child.answers.result(0)
    assert how == ["hung up"]
    with child.sock, child.theirs:
        assert isinstance(child.request({}).exception(0), FrameLostError), "nothing more is asked of it"


def test_a_child_without_a_reader_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []

    def begin(child: Any, guard: object, main: str) -> None:
        child.pid, (child.sock, child.theirs) = 4, socket.socketpair()

    def kill(child: Any) -> None:
        killed.append(child.pid)
        child.sock.close()
        child.theirs.close()

    monkeypatch.setattr(threads, "REFUSED_PAUSES_S", ())
    monkeypatch.setattr(quarantine_pool.SocketChild, "__init__", begin)
    monkeypatch.setattr(ChildProcess, "kill", kill)
    RefusedThreads(monkeypatch, "brainq-quarantine", 1)
    with pytest.raises(OSError, match=REFUSED):
        ChildProcess({}, cast("Any", None), print)
    assert killed == [4]


@pytest.mark.parametrize("failure", [KeyError("number"), MemoryError(), FrameLostError("gone")])
def test_a_tool_process_that_cannot_read_ends_itself(monkeypatch: pytest.MonkeyPatch, failure: BaseException) -> None:
    ended: list[int] = []

    def receive(sock: socket.socket) -> Any:
        raise failure

    def end(group: int, number: int) -> None:
        ended.append(number)

    monkeypatch.setattr(tool_processes, "receive_frame", receive)
    monkeypatch.setattr(tool_processes.os, "killpg", end)
    ours, theirs = socket.socketpair()
    server: Any = tool_processes._CallServer(ours, cast("Any", None))  # pyright: ignore[reportPrivateUsage]
    with ours, theirs, pytest.raises(type(failure)):
        server.read()
    assert ended == [9]
