"""judge_pass.lua: a judge's doorbell goes to a build that may judge the turn."""

from __future__ import annotations

from tests.lua.rig import SID, TID, Rig
from tests.lua.test_builds import NEW, OF_NEW, OF_OLD, OLD, bells_of, serve

QUEUE = "brainq.judges@old"


def ended_by_the_old_build(rig: Rig) -> None:
    rig.active()
    rig.client.hset(rig.names(TID)["turn"], mapping={"pin": OLD, "pin_build": "old"})


def test_it_is_rung_for_the_build_that_the_turn_is_pinned_to_once(rig: Rig) -> None:
    ended_by_the_old_build(rig)
    serve(rig, "judges", OLD, "old")
    assert rig.run("judge_pass", brains=OF_NEW["brains"]) == ["PASSED"]
    assert rig.run("judge_pass", brains=OF_NEW["brains"]) == ["ALREADY"]
    assert rig.run("job_ring") == ["ALREADY"], "and no other bell is rung meanwhile"
    (bell,) = bells_of(rig, QUEUE)
    assert bell["properties"]["delivery_info"]["routing_key"] == QUEUE
    assert 0 < rig.client.pttl(rig.names(TID)["rung"]) <= 600_000


def test_where_no_worker_of_it_is_there_nobody_is_rung_in_vain(rig: Rig) -> None:
    ended_by_the_old_build(rig)
    serve(rig, "judges", OLD, "old", ago_ms=10_001)
    assert rig.run("judge_pass", brains=OF_NEW["brains"]) == ["UNSERVED"]
    assert bells_of(rig, QUEUE) == []


def test_the_build_itself_and_one_that_it_is_released_to_may_judge(rig: Rig) -> None:
    ended_by_the_old_build(rig)
    assert rig.run("judge_pass", brains=OF_OLD["brains"]) == ["MINE"]
    rig.client.hset(f"{rig.keys.prefix}released", OLD, NEW)
    assert rig.run("judge_pass", brains=OF_NEW["brains"]) == ["MINE"]


def test_a_state_that_this_one_does_not_read_goes_to_those_that_do(rig: Rig) -> None:
    rig.active()
    rig.client.hset(rig.names(TID)["turn"], "format", 2)
    assert rig.run("judge_pass") == ["PASSED"]
    assert len(bells_of(rig, "brainq.judges@format-2")) == 1
    assert rig.client.exists(f"{rig.keys.prefix}{{{SID}}}:outbox") == 0
