"""The worker's side of a process that works on one turn alone, with a child that does what the test says."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from brainq.errors import SetupError
from brainq.settings import Settings
from brainq.wiring import alone as alone_module
from brainq.wiring.alone import AloneProcesses


class FakeChild:
    """Answers what it is given; None: not yet."""

    name = "h-1"
    pid = 1
    is_alive = True

    def __init__(self, *answers: str | None) -> None:
        self.answers = list(answers)
        self.killed = False

    def wait_ready(self) -> None: ...

    def ask(self, doorbell: list[Any]) -> None: ...

    def answer(self, timeout_s: float) -> str | None:
        return self.answers.pop(0)

    def kill(self) -> None:
        self.killed = True


class FakeTurns:
    """Says who owns the turn, in order; what is an exception is raised."""

    def __init__(self, *owners: str | Exception) -> None:
        self.owners = list(owners)

    def owner(self, session_id: str, turn_id: str) -> str:
        owner = self.owners.pop(0)
        if isinstance(owner, Exception):
            raise owner
        return owner


def advance(monkeypatch: pytest.MonkeyPatch, child: FakeChild, turns: FakeTurns) -> str:
    def started(*_: object) -> FakeChild:
        return child

    monkeypatch.setattr(alone_module, "_Child", started)
    processes = AloneProcesses(Settings(redis_url=None), "redis://none", turns)  # pyright: ignore[reportArgumentType]
    return processes.advance("s1", "turn-1", 1)


def test_a_child_is_waited_for_while_redis_cannot_say_who_owns_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    child = FakeChild(None, None, "committed calls")
    assert advance(monkeypatch, child, FakeTurns(redis.ConnectionError(), "1@h-1")) == "committed calls"
    assert not child.killed


def test_a_child_that_hangs_and_holds_its_turn_no_more_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    child = FakeChild(None)
    assert advance(monkeypatch, child, FakeTurns("2@h-2")) == "lost"
    assert child.killed


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Children that start and never say that they are ready."""
    monkeypatch.setattr(alone_module, "_BOOT", "import time; time.sleep(600)")
    monkeypatch.setattr(alone_module, "START_S", 0.05)


@pytest.mark.usefixtures("silent")
def test_a_child_that_does_not_start_is_given_up() -> None:
    processes = AloneProcesses(Settings(redis_url=None), "redis://none", FakeTurns())  # pyright: ignore[reportArgumentType]
    try:
        with pytest.raises(SetupError, match="did not start"):
            processes.advance("s1", "turn-1", 1)
    finally:
        processes.close()
