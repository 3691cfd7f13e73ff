"""quarantine_wait.lua: a suspect waits for a place in quarantine, and its time stands still."""

from __future__ import annotations

import pytest

from brainq.adapters.celery.names import TURNS_QUEUE
from tests.lua.rig import LEASE_MS, TID, TIMEOUT_MS, Rig

ANY = 1_000_000


@pytest.fixture
def suspect(rig: Rig) -> Rig:
    """A turn that nobody holds and that has all its time."""
    rig.owned()
    rig.client.hset(rig.names(TID)["turn"], mapping={"lost_attempts": 2, "owner": ""})
    rig.bells(TURNS_QUEUE)
    return rig


def wait(rig: Rig, after_ms: int = LEASE_MS) -> str:
    return rig.run("quarantine_wait", after_ms=after_ms)[0]


def left_ms(rig: Rig) -> int:
    return int(rig.client.hget(rig.names(TID)["budget"], "deadline")) - rig.now_ms


def claim(rig: Rig) -> str:
    return rig.run("turn_claim", owner="1@h-1", fence=1, most_lost=ANY)[0]


@pytest.mark.parametrize("step", ["0", "3"])
def test_its_time_stands_still_until_it_has_its_place(suspect: Rig, step: str) -> None:
    suspect.client.hset(suspect.names(TID)["turn"], "step", step)
    for _ in range(5):
        assert wait(suspect) == "WAITS"
        suspect.pass_ms(3_000)
    assert claim(suspect) == "GO"
    assert left_ms(suspect) == TIMEOUT_MS
    assert "waits_for" not in suspect.turn()
    suspect.pass_ms(1_000)
    assert left_ms(suspect) == TIMEOUT_MS - 1_000


def test_nobody_rings_while_it_waits_and_the_sweeper_does_when_nobody_says_so_any_more(suspect: Rig) -> None:
    wait(suspect)
    suspect.pass_ms(3_000)
    wait(suspect)
    suspect.pass_ms(LEASE_MS - 1_000)
    suspect.run("turn_sweep")
    assert suspect.bells(TURNS_QUEUE) == []
    assert suspect.look_in_ms() == 1_000
    suspect.pass_ms(1_000)
    suspect.run("turn_sweep")
    assert len(suspect.bells(TURNS_QUEUE)) == 1
    suspect.pass_ms(500)
    assert claim(suspect) == "GO"
    assert left_ms(suspect) == TIMEOUT_MS - 500


def test_it_stands_still_for_as_long_as_the_turn_has_at_most(suspect: Rig) -> None:
    waited_ms = 0
    while left_ms(suspect) > 0:
        assert wait(suspect) == "WAITS"
        suspect.pass_ms(3_000)
        waited_ms += 3_000
    assert TIMEOUT_MS * 2 - LEASE_MS <= waited_ms <= TIMEOUT_MS * 2 + 3_000
    assert wait(suspect) == "GONE"


def test_what_is_not_its_time_to_wait(suspect: Rig) -> None:
    assert suspect.run("quarantine_wait", after_ms=LEASE_MS, fence=2) == ["GONE"]
    suspect.run("turn_claim", owner="w2", fence=1, most_lost=ANY)
    assert suspect.run("quarantine_wait", after_ms=LEASE_MS, fence=2) == ["GONE"]
    suspect.pass_ms(LEASE_MS)
    assert suspect.run("quarantine_wait", after_ms=LEASE_MS, fence=2) == ["WAITS"]
    suspect.run("turn_cancel")
    assert suspect.run("quarantine_wait", after_ms=LEASE_MS, fence=2) == ["GONE"]
