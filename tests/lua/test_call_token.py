"""call_token.lua: the token that a running call gives away."""

from __future__ import annotations

from tests.lua.rig import LEASE_MS, TID, Rig


def test_the_first_token_is_given_and_stays(rig: Rig) -> None:
    rig.running()
    assert rig.run("call_token", token="one") == ["GIVEN", "one"]
    assert rig.run("call_token", token="two") == ["GIVEN", "one"]
    assert rig.client.hget(rig.names(TID)["trace"], "c1-0:given") == "one"


def test_the_next_attempt_gives_the_same(rig: Rig) -> None:
    rig.running()
    rig.run("call_token", token="one")
    rig.pass_ms(LEASE_MS + 1)
    rig.run("call_next_attempt")
    assert rig.run("call_token", token="two", attempt=2) == ["LOST"], "nobody has claimed it"
    rig.run("call_claim", attempt=2, owner="w2")
    assert rig.run("call_token", token="two", attempt=2, owner="w2") == ["GIVEN", "one"]


def test_somebody_elses_call_and_one_that_is_over_give_nothing(rig: Rig) -> None:
    rig.running()
    assert rig.run("call_token", owner="w2") == ["LOST"]
    assert rig.run("call_token", attempt=2) == ["LOST"]
    rig.run("call_settle")
    assert rig.run("call_token") == ["LOST"]
    assert not rig.client.hexists(rig.names(TID)["trace"], "c1-0:given")
