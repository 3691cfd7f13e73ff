"""Two worlds of turns that people talk to: a narrow one with few slots and rare beats, and one of killed workers."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator

import pytest

from tests.support.brains import diary
from tests.support.elsewhere import Elsewhere
from tests.support.world import World

APP = {"BRAINQ_APP": "tests.support.brains.people:brain"}
_sessions = itertools.count(1)

Neighbours = Callable[[World], Elsewhere]


@pytest.fixture(scope="package")
def narrow_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(
        tmp_path_factory.mktemp("narrow"),
        threads={"coordinator": 2, "parallel": 2, "serial": 1},
        pace={"lease_s": 60.0, "beat_s": 20.0},  # no beat tells anything in time
        environment=APP,
    )
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture(scope="package")
def stormy_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(
        tmp_path_factory.mktemp("people"),
        workers={"coordinator": 2, "parallel": 1, "serial": 2, "finalizer": 2},
        environment=APP,
        durable=True,
    )
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture
def narrow(narrow_world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv(diary.DIRECTORY, str(narrow_world.directory))
    return narrow_world


@pytest.fixture
def stormy(stormy_world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """What one worker dies of is healed by the other of its pool; the dead are replaced."""
    monkeypatch.setenv(diary.DIRECTORY, str(stormy_world.directory))
    yield stormy_world
    stormy_world.launch_dead()


@pytest.fixture
def neighbours() -> Iterator[Neighbours]:
    """Starts second processes, and ends them after the test."""
    made: list[Elsewhere] = []

    def start(world: World) -> Elsewhere:
        made.append(Elsewhere(world.environment))
        return made[-1]

    yield start
    for each in made:
        each.close()


@pytest.fixture(scope="package")
def _narrow_neighbour(narrow_world: World) -> Iterator[Elsewhere]:
    made = Elsewhere(narrow_world.environment)
    yield made
    made.close()


@pytest.fixture
def other(_narrow_neighbour: Elsewhere) -> Elsewhere:
    """A second process beside the narrow world."""
    return _narrow_neighbour


@pytest.fixture
def sid() -> str:
    """A session nobody else uses."""
    return f"p{os.getpid()}-{next(_sessions)}"
