"""turn_blame.lua: a process that worked on one turn alone has died."""

from __future__ import annotations

import pytest

from tests.lua.rig import LEASE_MS, Rig


@pytest.fixture
def alone(rig: Rig) -> Rig:
    """A turn that the process h-1 holds."""
    rig.active()
    rig.bells("brainq.turns")
    assert rig.run("turn_claim", owner="3@h-1", fence=0)[0] == "GO"
    return rig


def test_it_is_counted_and_the_turn_is_rung_for_at_once(alone: Rig) -> None:
    assert alone.run("turn_blame") == ["BLAMED", 1]
    held = alone.turn()
    assert (held["died_alone"], held["lost_attempts"], held["died_how"]) == (
        "1",
        "1",
        "was killed by signal 9",
    )
    assert alone.bells("brainq.turns") == [["s1", "t01", 1]]


def test_the_sweeper_may_have_come_before(alone: Rig) -> None:
    alone.pass_ms(LEASE_MS)
    alone.run("turn_sweep")
    alone.bells("brainq.turns")
    assert alone.run("turn_blame") == ["BLAMED", 1]
    assert (alone.turn()["died_alone"], alone.turn()["lost_attempts"]) == ("1", "1")
    assert alone.bells("brainq.turns") == []


def test_a_process_that_was_taken_for_lost_before_is_blamed_once(alone: Rig) -> None:
    alone.pass_ms(LEASE_MS)
    alone.run("turn_sweep")
    (bell,) = alone.bells("brainq.turns")
    assert alone.run("turn_claim", owner="4@h-1", fence=bell[2])[0] == "GO"
    assert alone.run("turn_blame") == ["BLAMED", 1]
    assert alone.turn()["died_alone"] == "1"


def test_another_process_is_not_meant(alone: Rig) -> None:
    assert alone.run("turn_blame", process="@h-2") == ["GONE"]
    assert "died_alone" not in alone.turn()


def test_a_turn_that_is_over_is_not_blamed(alone: Rig) -> None:
    alone.run("turn_end", owner="3@h-1")
    assert alone.run("turn_blame") == ["GONE"]
