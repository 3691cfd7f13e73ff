"""The worker's side of a process that works on one turn alone, with a child that does what the test says."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import redis

from brainq.app.wiring import quarantine as alone_module
from brainq.app.wiring.quarantine import Quarantine
from brainq.contracts.claim import FinalStepClaim
from brainq.engine.finalize.steps import QuarantinedStepError
from brainq.errors import SetupError
from brainq.runtime.processes import child as process_module
from brainq.runtime.processes import quarantine_pool as parent_module
from brainq.runtime.processes.child import FrameLostError
from brainq.runtime.processes.guard import ProcessGuard
from brainq.runtime.settings.deployment import Settings
from tests.support.wait import wait_until


class FakeChild:
    """Answers what it is given; None: not yet. Of an exception it dies."""

    name = "h-1"
    pid = 1

    def __init__(self, *answers: dict[str, Any] | Exception | None) -> None:
        self.answers = list(answers)
        self.asked: list[dict[str, Any]] = []
        self.is_alive = True
        self.on_gone: Callable[[str], object] = print

    def wait_ready(self) -> None: ...

    def request(self, what: dict[str, Any]) -> FakeAnswer:
        self.asked.append(what)
        return FakeAnswer(self)

    def kill(self) -> None:
        self.is_alive = False


@dataclass
class FakeAnswer:
    child: FakeChild

    def result(self, timeout_s: float | None) -> dict[str, Any]:
        answer = self.child.answers.pop(0)
        if answer is None:
            raise TimeoutError
        if isinstance(answer, Exception):
            self.child.on_gone("was killed by signal 11")
            raise answer
        return answer


class FakeTurns:
    """Says who owns the turn, in order; what is an exception is raised.

    among   with how many the last process died
    blames  what each blame is answered
    """

    def __init__(self, *owners: str | Exception, among: int = 0, blames: Sequence[str] = ()) -> None:
        self.owners = list(owners)
        self.among = among
        self.blames = list(blames)
        self.blamed: list[tuple[str, str, int]] = []

    def owner(self, session_id: str, turn_id: str) -> str:
        owner = self.owners.pop(0)
        if isinstance(owner, Exception):
            raise owner
        return owner

    def died_among(self, session_id: str, turn_id: str) -> int:
        return self.among

    def blame(self, session_id: str, turn_id: str, process: str, how: str, among: int) -> str:
        self.blamed.append((process, how, among))
        return self.blames.pop(0)


def processes(monkeypatch: pytest.MonkeyPatch, turns: FakeTurns, *children: FakeChild) -> Quarantine:
    started = iter(children)

    def start(_settings: object, _guard: object, on_gone: Callable[[str], object]) -> FakeChild:
        child = next(started)
        child.on_gone = on_gone
        return child

    monkeypatch.setattr(alone_module, "ChildProcess", start)
    return Quarantine(Settings(redis_url=None), "redis://none", turns)  # pyright: ignore[reportArgumentType]


def advance(monkeypatch: pytest.MonkeyPatch, turns: FakeTurns, *children: FakeChild) -> str:
    return processes(monkeypatch, turns, *children).advance("s1", "turn-1", 1)


def test_a_child_is_waited_for_while_redis_cannot_say_who_owns_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    child = FakeChild(None, None, {"did": "committed calls"})
    assert advance(monkeypatch, FakeTurns(redis.ConnectionError(), "1@h-1"), child) == "committed calls"
    assert child.is_alive


def test_a_child_that_hangs_and_holds_its_turn_no_more_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    child = FakeChild(None)
    assert advance(monkeypatch, FakeTurns("2@h-2"), child) == "lost"
    assert not child.is_alive


def test_a_child_that_dies_is_told_of_with_those_who_were_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = FakeTurns(blames=["BLAMED"])
    child = FakeChild(FrameLostError("gone"))
    assert advance(monkeypatch, turns, child) == "died: blamed"
    assert turns.blamed == [("h-1", "was killed by signal 11", 1)]
    assert not child.is_alive


def test_a_turn_whose_child_died_of_another_before_it_was_taken_up_goes_on_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody would ring for it: as for Redis nobody has had it."""
    turns = FakeTurns(blames=["GONE"])
    dies, lives = FakeChild(FrameLostError("gone")), FakeChild({"did": "committed calls"})
    assert advance(monkeypatch, turns, dies, lives) == "committed calls"
    assert [asked["turn"] for asked in lives.asked] == [["s1", "turn-1", 1]]


def test_a_turn_that_is_worked_on_is_not_worked_on_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    child = FakeChild()
    alone = processes(monkeypatch, FakeTurns(), child)
    second: list[str] = []

    def ready() -> None:
        second.append(alone.advance("s1", "turn-1", 1))
        child.answers.append({"did": "waits"})

    child.wait_ready = ready
    assert alone.advance("s1", "turn-1", 1) == "waits"
    assert second == ["dropped, because a process of its own works on the turn"]


STEP = FinalStepClaim("s1", "turn-1", "own", "w1", 4, 3, lost=2)


def test_a_child_is_told_the_claim_of_a_step_and_kept_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    child = FakeChild({}, {"failed": "ValueError", "text": "no"})
    alone = processes(monkeypatch, FakeTurns(), child)
    alone.run_step(STEP, 60.0)
    with pytest.raises(QuarantinedStepError, match="no") as raised:
        alone.run_step(STEP, 60.0)
    assert raised.value.error_type == "ValueError"
    assert [FinalStepClaim(**asked["step"]) for asked in child.asked] == [STEP, STEP]
    assert child.is_alive


@pytest.mark.parametrize(
    ("answer", "error_type", "says"),
    [
        (FrameLostError("gone"), "ProcessDied", "the step's own process was killed by signal 11"),
        (None, "TimeoutError", "did not return within 60 s"),
    ],
)
def test_a_child_that_dies_or_hangs_in_a_step_fails_that_step_and_is_not_used_again(
    monkeypatch: pytest.MonkeyPatch, answer: Exception | None, error_type: str, says: str
) -> None:
    first, second = FakeChild(answer), FakeChild({})
    alone = processes(monkeypatch, FakeTurns(), first, second)
    with pytest.raises(QuarantinedStepError, match=says) as raised:
        alone.run_step(STEP, 60.0)
    assert raised.value.error_type == error_type
    assert not first.is_alive
    alone.run_step(STEP, 60.0)
    assert second.asked


OBEDIENT = """
import json, os, sys
sys.path[:] = json.loads(sys.argv[2])
import socket
from brainq.runtime.processes.child import receive_frame, send_frame
sock = socket.socket(fileno=int(sys.argv[1]))
receive_frame(sock)
send_frame(sock, {"ready": os.getpid()})
while True:
    asked = receive_frame(sock)
    if asked["turn"][1] == "poison":
        os._exit(13)
    send_frame(sock, {"did": str(os.getpid()), "id": asked["id"]})
"""


class Guard(ProcessGuard):
    """Says which groups it would kill; it kills none."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: set[int] = set()

    def add(self, group: int) -> None:
        self.groups.add(group)

    def forget(self, group: int) -> None:
        self.groups.discard(group)


@pytest.fixture
def guard(monkeypatch: pytest.MonkeyPatch) -> Guard:
    guard = Guard()
    monkeypatch.setattr(process_module, "_BOOT", OBEDIENT)
    monkeypatch.setattr(alone_module, "ProcessGuard", lambda: guard)
    return guard


def worker(turns: FakeTurns) -> Quarantine:
    return Quarantine(Settings(redis_url=None), "redis://none", turns)  # pyright: ignore[reportArgumentType]


def test_of_an_idle_child_that_died_nothing_is_left(guard: Guard) -> None:
    """Neither a process that nobody reaps, nor its socket, nor its group, whose number may be a stranger's later."""
    before = set(os.listdir("/dev/fd"))
    alone = worker(FakeTurns())
    try:
        pid = int(alone.advance("s1", "turn-1", 1))
        assert guard.groups == {pid}
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not guard.groups, "its group is forgotten")
        # What others had open may be gone, too: an earlier test's garbage is collected at any time.
        wait_until(lambda: set(os.listdir("/dev/fd")) <= before, "its socket is closed")
        with pytest.raises(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        assert int(alone.advance("s1", "turn-1", 1)) != pid
    finally:
        alone.close()
    assert not guard.groups


def test_a_child_is_killed_by_its_number_before_that_can_be_another_s(
    guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[int] = []

    def killpg(group: int, number: int) -> None:
        assert os.waitid(os.P_PID, group, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None, "it is reaped"
        killed.append(group)

    monkeypatch.setattr(process_module.os, "killpg", killpg)
    turns = FakeTurns(blames=["BLAMED"])
    alone = worker(turns)
    try:
        assert alone.advance("s1", "poison", 1) == "died: blamed"
    finally:
        alone.close()
    ((_, how, among),) = turns.blamed
    assert (how, among) == ("exited with status 13", 1)
    assert len(killed) == 1
    assert not guard.groups


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Children that start and never say that they are ready."""
    monkeypatch.setattr(process_module, "_BOOT", "import time; time.sleep(600)")
    monkeypatch.setattr(parent_module, "START_S", 0.05)


@pytest.mark.usefixtures("silent")
def test_a_child_that_does_not_start_is_given_up() -> None:
    alone = Quarantine(Settings(redis_url=None), "redis://none", FakeTurns())  # pyright: ignore[reportArgumentType]
    try:
        with pytest.raises(SetupError, match="did not start"):
            alone.advance("s1", "turn-1", 1)
    finally:
        alone.close()
