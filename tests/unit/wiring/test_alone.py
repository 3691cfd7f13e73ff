"""The worker's side of a process that works on one turn alone, with a child that does what the test says."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from brainq.calls.frames import FrameLostError
from brainq.contracts.claim import StepClaim
from brainq.errors import SetupError
from brainq.finalize.alone import FailedAlone
from brainq.settings import Settings
from brainq.wiring import alone as alone_module
from brainq.wiring import alone_process as process_module
from brainq.wiring.alone import AloneProcesses


class FakeChild:
    """Answers what it is given; None: not yet; an exception is raised."""

    name = "h-1"
    pid = 1

    def __init__(self, *answers: dict[str, Any] | Exception | None) -> None:
        self.answers = list(answers)
        self.asked: list[dict[str, Any]] = []
        self.is_alive = True

    def wait_ready(self) -> None: ...

    def ask(self, what: dict[str, Any]) -> None:
        self.asked.append(what)

    def answer(self, timeout_s: float | None) -> dict[str, Any] | None:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def end_word(self) -> str:
        return "was killed by signal 11"

    def kill(self) -> None:
        self.is_alive = False


class FakeTurns:
    """Says who owns the turn, in order; what is an exception is raised."""

    def __init__(self, *owners: str | Exception) -> None:
        self.owners = list(owners)

    def owner(self, session_id: str, turn_id: str) -> str:
        owner = self.owners.pop(0)
        if isinstance(owner, Exception):
            raise owner
        return owner


def processes(monkeypatch: pytest.MonkeyPatch, turns: FakeTurns, *children: FakeChild) -> AloneProcesses:
    started = iter(children)

    def start(*_: object) -> FakeChild:
        return next(started)

    monkeypatch.setattr(alone_module, "AloneProcess", start)
    return AloneProcesses(Settings(redis_url=None), "redis://none", turns)  # pyright: ignore[reportArgumentType]


def advance(monkeypatch: pytest.MonkeyPatch, child: FakeChild, turns: FakeTurns) -> str:
    return processes(monkeypatch, turns, child).advance("s1", "turn-1", 1)


def test_a_child_is_waited_for_while_redis_cannot_say_who_owns_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    child = FakeChild(None, None, {"did": "committed calls"})
    assert advance(monkeypatch, child, FakeTurns(redis.ConnectionError(), "1@h-1")) == "committed calls"
    assert child.is_alive


def test_a_child_that_hangs_and_holds_its_turn_no_more_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    child = FakeChild(None)
    assert advance(monkeypatch, child, FakeTurns("2@h-2")) == "lost"
    assert not child.is_alive


STEP = StepClaim("s1", "turn-1", "own", "w1", 4, 3, lost=2)


def test_a_child_is_told_the_claim_of_a_step_and_kept_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    child = FakeChild({}, {"failed": "ValueError", "text": "no"})
    alone = processes(monkeypatch, FakeTurns(), child)
    alone.run_step(STEP, 60.0)
    with pytest.raises(FailedAlone, match="no") as raised:
        alone.run_step(STEP, 60.0)
    assert raised.value.error_type == "ValueError"
    assert [StepClaim(**asked["step"]) for asked in child.asked] == [STEP, STEP]
    assert child.is_alive


@pytest.mark.parametrize(
    ("answer", "error_type", "says"),
    [
        (FrameLostError("gone"), "ProcessDied", "where nothing else ran, was killed by signal 11"),
        (None, "TimeoutError", "did not return within 60 s"),
    ],
)
def test_a_child_that_dies_or_hangs_in_a_step_fails_that_step_and_is_not_used_again(
    monkeypatch: pytest.MonkeyPatch, answer: Exception | None, error_type: str, says: str
) -> None:
    first, second = FakeChild(answer), FakeChild({})
    alone = processes(monkeypatch, FakeTurns(), first, second)
    with pytest.raises(FailedAlone, match=says) as raised:
        alone.run_step(STEP, 60.0)
    assert raised.value.error_type == error_type
    assert not first.is_alive
    alone.run_step(STEP, 60.0)
    assert second.asked


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Children that start and never say that they are ready."""
    monkeypatch.setattr(process_module, "_BOOT", "import time; time.sleep(600)")
    monkeypatch.setattr(process_module, "START_S", 0.05)


@pytest.mark.usefixtures("silent")
def test_a_child_that_does_not_start_is_given_up() -> None:
    alone = AloneProcesses(Settings(redis_url=None), "redis://none", FakeTurns())  # pyright: ignore[reportArgumentType]
    try:
        with pytest.raises(SetupError, match="did not start"):
            alone.advance("s1", "turn-1", 1)
    finally:
        alone.close()
