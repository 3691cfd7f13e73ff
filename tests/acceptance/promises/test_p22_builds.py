"""P22: a turn is never carried on by another brain than the one that began it, where that is pinned: two builds at
once, real workers, one Redis. That a build takes no state it cannot read is in tests/lua/test_builds.py.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from brainq.app.devserver.local_fleet import POOLS, LocalFleet
from brainq.contracts.build import Ramp
from tests.support.brains import diary
from tests.support.brains.diary import notes, open_gate
from tests.support.wait import wait_until
from tests.support.world import World
from tests.support.zygote import fork_celery

APP = "tests.support.brains.pinned"
OLD = {"BRAINQ_APP": f"{APP}:old", "BRAINQ_BUILD": "1.4"}
NEW = {"BRAINQ_APP": f"{APP}:new", "BRAINQ_BUILD": "1.5"}
EACH: dict[str, int] = dict.fromkeys(POOLS, 1)


class TwoBuilds(World):
    """The old build's fleet is the world's own; half of the sessions begin on each."""

    def start(self) -> World:
        self.wiring.state.builds.set_ramp(Ramp("1.5", "1.4", 5_000))
        super().start()
        new = {**self.environment, **NEW}
        self.new = LocalFleet(self.directory / "new-workers", new, workers=EACH, spawn=fork_celery)
        self.new.start(timeout_s=200.0)
        wait_until(lambda: len(self.wiring.state.builds.workers()) == 2 * len(POOLS), "all say of which build they are")
        return self

    def stop(self) -> None:
        self.new.stop(grace_s=2.0)
        super().stop()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoBuilds]:
    made = TwoBuilds(tmp_path_factory.mktemp("builds"), workers=EACH, environment=OLD)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture
def builds(both: TwoBuilds, monkeypatch: pytest.MonkeyPatch) -> TwoBuilds:
    monkeypatch.setenv(diary.DIRECTORY, str(both.directory))
    return both


def test_every_turn_ends_with_the_brain_that_began_it(builds: TwoBuilds) -> None:
    handles = [builds.client.submit(f"many-{number}", f"many {number}") for number in range(24)]
    ended: Counter[str] = Counter()
    for number, handle in enumerate(handles):
        result = handle.result(120)
        build = result.text.removeprefix("by ")
        steps = {note["build"] for note in notes("step", asked=f"many {number}")}
        calls = {note["build"] for note in notes("call", turn=handle.turn_id)}
        assert (steps, calls) == ({build}, {build}), handle.turn_id
        assert result.warnings == ()
        ended[build] += 1
    assert min(ended["old"], ended["new"]) >= 4, "both builds began turns"


def on_the_old_build(builds: TwoBuilds, message: str) -> Any:
    """A turn of a session that begins there."""
    for number in range(100):
        handle = builds.client.submit(f"{message.replace(' ', '-')}-{number}", f"{message}-{number}")
        asked = f"{message}-{number}"
        (first,) = wait_until(lambda asked=asked: notes("step", asked=asked, step=1), "its model was asked")[:1]
        if first["build"] == "old":
            return handle, asked.removeprefix("gate ")
        open_gate(asked.removeprefix("gate "))
    raise AssertionError("no session begins on the old build")


def test_a_turn_whose_build_is_gone_waits_and_says_so_and_can_be_released(builds: TwoBuilds) -> None:
    handle, gate = on_the_old_build(builds, "gate gone")
    (coordinator,) = builds.fleet.of_pool("coordinator")
    builds.fleet.kill(coordinator, signal.SIGTERM)
    state, old = builds.wiring.state, builds.wiring.build
    try:
        state.redis.pexpire(state.keys.serves("turns", old.brains[0].digest), 86_400_000 - 61_000)
        open_gate(gate)
        wait_until(lambda: notes("call", turn=handle.turn_id), "its call ran")
        wait_until(lambda: handle.explain().startswith("waits for build 1.4"), "it says for whom it waits")
        assert {note["build"] for note in notes("call", turn=handle.turn_id)} == {"old"}
        needed = {build.name: build.needed for build in builds.client.versions().builds}
        assert needed["1.4"] == 1
        assert state.redis.llen(f"{state.keys.prefix}brainq.turns@1.4") == 0, "nobody is rung in vain"
        assert builds.client.release_build("1.4", "1.5").brains == ("shop",)
        result = handle.result(120)
        assert result.text == "by new"
        assert "its brain changed while it ran" in result.warnings[0]
    finally:
        state.redis.delete(state.keys.released)
        coordinator.launch()
        wait_until(lambda: coordinator.is_ready, "the old coordinator is back")


@pytest.mark.full
@pytest.mark.timeout(600)
def test_blue_and_green_old_workers_go_once_their_build_is_empty_and_nothing_is_lost(builds: TwoBuilds) -> None:
    client, handles = builds.client, list[Any]()

    def submit(count: int) -> list[str]:
        some = [client.submit(f"blue-{len(handles) + number}", "blue") for number in range(count)]
        handles.extend(some)
        return [handle.result(120).text for handle in some]

    def says_of_old() -> str:
        return {build.name: build.says for build in client.versions().builds}["1.4"]

    def learned(share: int) -> bool:
        ramp = builds.wiring.state.builds.ramp()
        return ramp is not None and ramp.share == share

    waiting, gate = on_the_old_build(builds, "gate green")
    assert "in cell" not in client.ramp_build("1.5", 100).says
    wait_until(lambda: learned(10_000) and set(submit(2)) == {"by new"}, "new turns begin on the new build")
    assert says_of_old().startswith("1 turn need build 1.4"), "one that began there goes on there"
    open_gate(gate)
    assert waiting.result(120).text == "by old"
    wait_until(lambda: says_of_old() == "build 1.4 is empty: its workers can stop", "nothing needs it")
    try:
        for worker in builds.fleet.workers:
            builds.fleet.kill(worker, signal.SIGTERM)
        assert set(submit(12)) == {"by new"}
    finally:
        for worker in builds.fleet.workers:
            worker.launch()
        wait_until(lambda: all(worker.is_ready for worker in builds.fleet.workers), "the old workers are back")
    client.ramp_build("1.4", 100)  # and back
    wait_until(lambda: set(submit(2)) == {"by old"}, "new turns begin on the old build again")
    assert {handle.result(1).ending for handle in handles} == {"completed"}
    builds.wiring.state.builds.set_ramp(Ramp("1.5", "1.4", 5_000))
    wait_until(lambda: set(submit(8)) == {"by old", "by new"}, "both builds begin turns again, for the next test")
