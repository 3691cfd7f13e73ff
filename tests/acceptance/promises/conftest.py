"""Two worlds: a calm one that nobody disturbs, and a stormy one whose workers are killed."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import pytest

from tests.support.brains import diary
from tests.support.receiver import Receiver
from tests.support.world import World

_sessions = itertools.count(1)


@pytest.fixture(scope="package")
def receiver() -> Iterator[Receiver]:
    """Is told of what happens in the calm world's sessions that begin with `hooked:`."""
    with Receiver() as made:
        yield made


@pytest.fixture(scope="package")
def calm_world(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> Iterator[World]:
    made = World(
        tmp_path_factory.mktemp("calm"),
        workers={"serial": 4},
        log_level="DEBUG",
        environment={"BRAINQ_LOG_LEVEL": "debug", "BRAINQ_WEBHOOKS": receiver.setting(sessions=["hooked:"])},
    )
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture(scope="package")
def stormy_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    pools = ("coordinator", "parallel", "serial", "finalizer")
    made = World(
        tmp_path_factory.mktemp("stormy"),
        workers=dict.fromkeys(pools, 2),
        log_level="DEBUG",
        environment={"BRAINQ_LOG_LEVEL": "debug", "BRAINQ_LOG_FORMAT": "json"},
    )
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture
def calm(calm_world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv(diary.DIRECTORY, str(calm_world.directory))
    return calm_world


@pytest.fixture
def stormy(stormy_world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Every pool has two workers, so that what one dies of is healed by the other; the dead are replaced."""
    monkeypatch.setenv(diary.DIRECTORY, str(stormy_world.directory))
    yield stormy_world
    for path in stormy_world.directory.glob("order-*"):
        path.unlink()
    stormy_world.launch_dead()


@pytest.fixture
def sid() -> str:
    """A session nobody else uses."""
    return f"s{os.getpid()}-{next(_sessions)}"
