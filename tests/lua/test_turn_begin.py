"""turn_begin.lua: the user's message, once."""

from __future__ import annotations

from tests.lua.rig import TID, Rig


def test_the_message_enters_once_a_turn(rig: Rig) -> None:
    rig.owned()
    assert rig.run("turn_begin", items=['{"n": 1}', '{"n": 2}']) == ["BEGUN"]
    assert rig.run("turn_begin", items=['{"n": 3}']) == ["ALREADY"]
    assert rig.history() == [{"n": 1}, {"n": 2}]
    assert rig.client.hget(rig.names(TID)["session"], "turns") == "1"


def test_a_history_that_was_about_to_go_stays(rig: Rig) -> None:
    rig.owned()
    rig.client.rpush(rig.names(TID)["history"], '{"n": 0}')
    rig.client.pexpire(rig.names(TID)["history"], 1000)
    rig.run("turn_begin", items=['{"n": 1}'])
    assert rig.client.pttl(rig.names(TID)["history"]) == -1


def test_only_the_owner_begins(rig: Rig) -> None:
    rig.owned()
    assert rig.run("turn_begin", fence=0, items=["{}"]) == ["LOST"]
    assert rig.run("turn_begin", owner="w2", items=["{}"]) == ["LOST"]
    assert rig.history() == []


def test_turns_of_a_session_redis_has_forgotten_are_counted_on(rig: Rig) -> None:
    rig.owned()
    assert rig.run("turn_begin", earlier=7, items=["{}"]) == ["BEGUN"]
    assert rig.client.hget(rig.names(TID)["session"], "turns") == "8"
    assert rig.turn()["number"] == "8"


def test_a_review_begins_a_history_of_its_own(rig: Rig) -> None:
    rig.owned(isolated="1", turn_kind="review")
    rig.client.rpush(rig.names(TID)["history"], '{"n": 0}')
    assert rig.run("turn_begin", items=['{"n": 1}']) == ["BEGUN"]
    assert rig.history() == [{"n": 0}]
    assert rig.client.lrange(rig.names(TID)["turn"] + ":history", 0, -1) == ['{"n": 1}']
    assert rig.turn()["begin_at"] == "0"


def test_a_history_that_begins_gets_a_stamp_of_its_own(rig: Rig) -> None:
    rig.owned()
    session = rig.names(TID)["session"]
    assert rig.run("turn_begin", items=["{}"]) == ["BEGUN"]
    assert int(str(rig.client.hget(session, "history_stamp"))) > 0


def test_a_history_that_goes_on_keeps_its_stamp(rig: Rig) -> None:
    rig.owned()
    session = rig.names(TID)["session"]
    rig.client.rpush(rig.names(TID)["history"], '{"n": 0}')
    rig.client.hset(session, "history_stamp", "7")
    assert rig.run("turn_begin", items=["{}"]) == ["BEGUN"]
    assert rig.client.hget(session, "history_stamp") == "7"
