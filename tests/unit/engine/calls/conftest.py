"""An executor of its own for each test, and a hold that abandoned functions wait for."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from brainq.engine.brain.brain import Brain
from brainq.engine.calls import function_run
from brainq.engine.calls.executor import TOOL_LOOP, BoundedToolExecutor
from tests.unit.engine.calls.fakes import Rig


@pytest.fixture
def executor() -> Iterator[BoundedToolExecutor]:
    executor = BoundedToolExecutor()
    yield executor
    executor.close()
    TOOL_LOOP.stop()


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Set at the end at the latest, so that no abandoned function outlives its test."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def long_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, who sees the deadline has time to say what it has."""
    monkeypatch.setattr(function_run, "COOPERATIVE_GRACE_S", 30.0)


@pytest.fixture
def brain() -> Brain:
    return Brain("calls", "openai:x")


@pytest.fixture
def rig(brain: Brain, executor: BoundedToolExecutor) -> Iterator[Rig]:
    rig = Rig(brain, executor)
    yield rig
    rig.beats.stop()
