"""call_unstarted.lua: an attempt whose intent stands, and that never started."""

from __future__ import annotations

import pytest

from tests.lua.rig import LEASE_MS, TID, Rig

WRITE = {"effect": "local_write"}


@pytest.fixture
def claimed(rig: Rig) -> Rig:
    """A write that w1 has claimed, and whose lease has lapsed."""
    rig.running(**WRITE)
    rig.pass_ms(LEASE_MS)
    return rig


def test_it_is_fenced(claimed: Rig) -> None:
    assert claimed.run("call_unstarted") == ["UNSTARTED"]
    assert claimed.run("call_start") == ["LOST"]
    assert claimed.run("call_next_attempt") == ["AGAIN", 2]


def test_one_that_is_beating_or_has_started_is_not(rig: Rig) -> None:
    rig.running(**WRITE)
    assert rig.run("call_unstarted") == ["STARTED"]
    assert rig.run("call_start") == ["OK"]
    rig.pass_ms(LEASE_MS)
    assert rig.run("call_unstarted") == ["STARTED"]


def test_where_redis_may_have_lost_the_start_it_may_have_started(claimed: Rig) -> None:
    trace = claimed.names(TID)["trace"]
    noted = claimed.client.hget(trace, "c1-0:run")
    attempt, run_id, replid = noted.split()
    said = claimed.client.info()
    assert (attempt, run_id, replid) == ("1", said["run_id"], said["master_replid"])
    for other in (f"1 {replid} {replid}", f"1 {run_id} {run_id}", f"2 {run_id} {replid}"):
        claimed.client.hset(trace, "c1-0:run", other)
        assert claimed.run("call_unstarted") == ["STARTED"]
    claimed.client.hdel(trace, "c1-0:run")  # claimed by an older worker
    assert claimed.run("call_unstarted") == ["STARTED"]


def test_a_claim_by_another_than_wrote_the_intent_says_nothing_of_that_one(claimed: Rig) -> None:
    """Redis lost the first claim of the attempt, and that it had started."""
    assert claimed.run("call_unstarted", owner="w2") == ["STARTED"]
    assert claimed.run("call_unstarted", owner="w1") == ["UNSTARTED"]


def test_another_attempt_is_gone(claimed: Rig) -> None:
    assert claimed.run("call_unstarted", attempt=2) == ["GONE", "running"]
    assert claimed.run("call_unstarted", call="c9-9") == ["GONE", "gone"]
