"""turn_blame.lua: a process in quarantine has died."""

from __future__ import annotations

import pytest

from tests.lua.rig import LEASE_MS, TID, Rig


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
    assert (held["died_alone"], held["lost_attempts"], held["died_how"]) == ("1", "1", "was killed by signal 9")
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


def test_where_others_were_in_it_none_is_blamed_but_how_many_they_were_is_noted(alone: Rig) -> None:
    alone.client.hset(alone.names(TID)["turn"], "lost_attempts", 2)
    assert alone.run("turn_blame", among=8) == ["BLAMED", 0]
    held = alone.turn()
    assert (held["died_among"], held["lost_attempts"], held["owner"]) == ("8", "2", "")
    assert "died_alone" not in held
    (bell,) = alone.bells("brainq.turns")
    assert alone.run("turn_claim", owner="5@h-2", fence=bell[2]) == ["DROP", "suspect"]
    assert alone.run("turn_claim", owner="5@h-2", fence=bell[2], most_lost=1_000_000)[0] == "GO"
    assert alone.run("turn_blame", process="@h-2") == ["BLAMED", 1]
    assert alone.turn()["died_among"] == "1"


def test_a_process_of_several_that_stopped_beating_costs_none_of_them_a_lost_worker(alone: Rig) -> None:
    alone.client.hset(alone.names(TID)["turn"], "lost_attempts", 2)
    alone.pass_ms(LEASE_MS)
    alone.run("turn_sweep")
    assert alone.turn()["lost_attempts"] == "3"
    assert alone.run("turn_blame", among=3) == ["BLAMED", 0]
    assert alone.turn()["lost_attempts"] == "2"


def test_how_many_they_were_is_forgotten_once_the_turn_went_on_and_lost_a_worker_anew(alone: Rig) -> None:
    alone.run("turn_blame", among=8)
    alone.run("turn_claim", owner="4@h-3", fence=1)
    alone.commit(owner="4@h-3", fence=2)
    alone.pass_ms(LEASE_MS)
    alone.run("turn_sweep")
    assert alone.turn()["died_among"] == "8", "nobody asks for it"
    alone.client.hset(alone.names(TID)["turn"], mapping={"awaits": "coordinator", "owner": "9@h-4"})
    alone.run("turn_sweep")
    assert "died_among" not in alone.turn()
