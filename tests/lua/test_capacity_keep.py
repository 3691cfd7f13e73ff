"""capacity_keep.lua: how large the room is, who is in it by mistake, and who may come in."""

from __future__ import annotations

from typing import Any

from tests.lua.rig import Rig

A1, A2, A3, B1 = ("a:1", "t01"), ("a:2", "t02"), ("a:3", "t03"), ("b:1", "t04")


def keep(
    rig: Rig, size: int, share: int | None = None, own: str = "{}", caps: str = "{}", cap_ms: int = 0
) -> list[Any]:
    """`cap_ms`: caps that are not told any more are lifted at once."""
    said: dict[str, Any] = {"size": size, "share": share or size, "own": own, "caps": caps, "cap_ms": cap_ms}
    return rig.run("capacity_keep", **said, most=100, keep_ms=600_000)


def submit(rig: Rig, turn: tuple[str, str], **given: Any) -> list[Any]:
    return rig.run("turn_submit", sid=turn[0], tid=turn[1], **given)


def state(rig: Rig, turn: tuple[str, str]) -> str:
    return rig.client.hget(rig.names(turn[1], turn[0])["turn"], "state")


def test_more_room_lets_in_who_waits_one_of_each_tenant_in_turn(rig: Rig) -> None:
    keep(rig, 1)
    assert submit(rig, A1) == ["ACTIVE"]
    assert [submit(rig, turn)[:2] for turn in (A2, A3, B1)] == [["QUEUED", 0], ["QUEUED", 1], ["QUEUED", 0]]
    rig.bells("brainq.turns")
    assert keep(rig, 3) == ["KEPT", 3, "a:2 b:1"]
    assert rig.bells("brainq.turns") == [["a:2", "t02", 0], ["b:1", "t04", 0]]
    assert state(rig, A3) == "queued"


def test_a_larger_share_lets_in_a_tenant_that_had_none_left(rig: Rig) -> None:
    keep(rig, 9, 1)
    submit(rig, A1)
    assert submit(rig, A2)[0] == "QUEUED"
    assert submit(rig, B1) == ["ACTIVE"], "another tenant's share is free"
    assert keep(rig, 9, 1) == ["KEPT", 2, ""]
    assert keep(rig, 9, 1, '{"a:":2}') == ["KEPT", 3, "a:2"]
    submit(rig, A3)
    assert state(rig, A3) == "queued"
    assert keep(rig, 9, 3) == ["KEPT", 4, "a:3"], "a share of its own that is said no more counts no more"


def test_a_tenant_without_a_share_left_stays_out_of_it_while_another_takes_the_last_place(rig: Rig) -> None:
    keep(rig, 1)
    for turn in (A1, A2, B1):
        submit(rig, turn)
    assert keep(rig, 2, 1) == ["KEPT", 2, "b:1"]
    assert rig.client.zrange(rig.keys.room_capped, 0, -1) == ["a:"]
    rig.run("turn_cancel", sid=A2[0], tid=A2[1])
    assert keep(rig, 2, 1) == ["KEPT", 2, ""]
    assert not rig.client.exists(rig.keys.room_capped), "nobody stands in its line any more"


def test_less_room_stops_nobody(rig: Rig) -> None:
    submit(rig, A1)
    submit(rig, B1)
    assert keep(rig, 1) == ["KEPT", 2, ""]
    assert (state(rig, A1), state(rig, B1)) == ("active", "active")


def test_a_place_whose_turn_is_lost_is_free_again(rig: Rig) -> None:
    keep(rig, 1)
    submit(rig, A1)
    submit(rig, B1)
    rig.client.delete(rig.names(A1[1], A1[0])["turn"])
    assert keep(rig, 1) == ["KEPT", 1, "b:1"]
    assert state(rig, B1) == "active"


def test_places_are_looked_at_some_at_a_time(rig: Rig) -> None:
    keep(rig, 3)
    for turn in (A1, A2, B1):
        submit(rig, turn)
        rig.client.delete(rig.names(turn[1], turn[0])["turn"])
    room: dict[str, Any] = {"size": 3, "share": 3, "own": "{}", "caps": "{}", "cap_ms": 0, "keep_ms": 600_000}
    assert [rig.once("capacity_keep", most=2, **room)[1] for _ in range(2)] == [1, 0]


def test_how_large_it_is_is_forgotten_when_nobody_says_so(rig: Rig) -> None:
    keep(rig, 1)
    assert 0 < rig.client.pttl(rig.keys.room) <= 600_000
