"""Every background thread of a running fleet fails in every way: turns go on, leases are renewed, cancels are heard."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from brainq.cli.doctor.fleet import check_troubles
from brainq.client.connection import wiring_of
from brainq.client.handle import TurnHandle
from brainq.contracts.status import Ending, TraceStatus
from tests.support.brains import diary
from tests.support.brains.diary import notes, open_gate, order
from tests.support.brains.faulty import FAULTS, IN_WORKERS, ORDER
from tests.support.brains.obedient import script
from tests.support.thread_table import IN_THE_FLEET
from tests.support.wait import wait_until
from tests.support.world import World

LEASE_S = 2.5


@pytest.fixture(scope="module")
def faulty_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(
        tmp_path_factory.mktemp("faulty"),
        environment={"BRAINQ_APP": "tests.support.brains.faulty:brain", IN_WORKERS: "1"},
    )
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture
def faulty(faulty_world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv(diary.DIRECTORY, str(faulty_world.directory))
    yield faulty_world
    order(ORDER, "")


def acted(world: World, sid: str, **words: str) -> TurnHandle:
    """A turn that runs an async rule, an async tool and a plain one, to its end."""
    open_gate("open")
    handle = world.client.submit(sid, script([("act", words)], [("hold", {"gate": "open"})]))
    assert handle.result(timeout_s=60).ending is Ending.COMPLETED
    return handle


def logs(world: World) -> str:
    return "".join(path.read_text() for path in (world.directory / "workers").glob("*.log"))


def test_refused_starts_keep_no_thread_from_starting(faulty: World, sid: str) -> None:
    acted(faulty, sid)
    assert {row["thread"] for row in notes("refused")} >= set(IN_THE_FLEET)


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        pytest.param(number, kind, marks=() if kind == "SystemExit" else pytest.mark.full)
        for number, kind in enumerate(FAULTS, start=1)
    ],
)
def test_a_fleet_goes_on_whatever_ends_its_threads(faulty: World, sid: str, number: int, kind: str) -> None:
    acted(faulty, sid)
    order(ORDER, json.dumps([number, kind, IN_THE_FLEET]))

    def all_failed() -> bool:
        acted(faulty, sid)  # some threads wait until there is something to do
        return {row["thread"] for row in notes("fault", number=number)} == set(IN_THE_FLEET)

    wait_until(all_failed, "every thread failed", timeout_s=150, every_s=0.1)  # the watchdog: at its next deadline
    order(ORDER, "")
    renewed_and_heard(faulty, sid, f"{number}-{sid}")
    said = logs(faulty)
    # The listener looks after the exceptions of its connections itself.
    assert [name for name in IN_THE_FLEET if f"thread {name} failed and will be tried again" not in said] in (
        [],
        ["brainq-stops"],
    )


def renewed_and_heard(world: World, sid: str, gate: str) -> None:
    """A write goes on for longer than its lease, and starts once; another one hears of a cancel."""
    handle = world.client.submit(sid, script([("hold", {"gate": gate})]))
    wait_until(lambda: notes("hold", turn=handle.turn_id), "the write runs")
    began = diary.now()
    wait_until(lambda: diary.now() > began + 1.5 * LEASE_S, "its lease would have ended")
    open_gate(gate)
    assert handle.result(timeout_s=60).ending is Ending.COMPLETED
    assert [row["attempt"] for row in notes("hold", turn=handle.turn_id)] == [1]
    cancelled = world.client.submit(sid, script([("hold", {"gate": "never"})]))
    wait_until(lambda: notes("hold", turn=cancelled.turn_id), "the write runs")
    cancelled.cancel("enough")
    assert cancelled.result(timeout_s=60).ending is Ending.CANCELLED


def test_a_thread_that_fails_again_and_again_is_named_by_doctor_and_the_fleet_while_it_does(
    faulty: World, sid: str
) -> None:
    acted(faulty, sid)
    order(ORDER, json.dumps([-1, "SystemExit", ["brainq-beats"]]))

    def named() -> list[str]:
        return [each.text for each in faulty.client.fleet().troubles if each.subject.startswith("serial@")]

    wait_until(named, "the fleet names the worker")
    assert "thread brainq-beats has ended" in named()[0]
    settings = wiring_of(faulty.client).settings
    assert any("thread brainq-beats has ended" in check.said for check in check_troubles(settings))
    order(ORDER, "")
    wait_until(lambda: not faulty.client.fleet().troubles, "nothing is wrong any more")
    acted(faulty, sid)


@pytest.mark.parametrize("word", ["exit", pytest.param("interrupt", marks=pytest.mark.full)])
def test_a_tool_that_exits_ends_its_call_alone(faulty: World, sid: str, word: str) -> None:
    handle = acted(faulty, sid, tool=word)
    first, second = faulty.trace(handle)
    assert (first.status, second.status) == (TraceStatus.FAILED, TraceStatus.COMPLETED)
    again = acted(faulty, sid)
    assert {entry.status for entry in faulty.trace(again)} == {TraceStatus.COMPLETED}


@pytest.mark.parametrize("word", ["exit", pytest.param("interrupt", marks=pytest.mark.full)])
def test_a_rule_that_exits_asks_a_person_and_the_next_one_is_heard(faulty: World, sid: str, word: str) -> None:
    handle = faulty.client.submit(sid, script([("act", {"rule": word})]))
    (asked,) = wait_until(lambda: faulty.client.approvals(sid), "a person is asked")
    assert "the approval rule failed" in asked.reason
    handle.cancel("enough")
    assert handle.result(timeout_s=60).ending is Ending.CANCELLED
    acted(faulty, sid)


def test_no_worker_was_replaced(faulty: World) -> None:
    assert [worker.is_running for worker in faulty.fleet.workers] == [True] * len(faulty.fleet.workers)
