"""stop_put.lua: what operators stop by name is known to every claim at once, until it is lifted."""

from __future__ import annotations

import json
from typing import Any

from brainq.adapters.redis.stops import RedisStops
from brainq.contracts.stop import Stop
from tests.lua.rig import Rig

KEPT_MS = 86_400_000


def stop(rig: Rig, what: str, tenant: str = "", mode: str = "pause", **given: Any) -> str:
    """The field of what is stopped by ann."""
    kind, name = what.split(" ")
    how = "paused" if mode == "pause" else "forbidden"
    text = json.dumps({"kind": kind, "name": name, "says": f"{what} is {how} by ann: wrong prices"})
    given = {"remaining_ms": "", "keep_ms": KEPT_MS} | given
    assert rig.run("stop_put", field=f"{what} {tenant}", mode=mode, text=text, **given) == ["STOPPED"]
    return f"{what} {tenant}"


def lift(rig: Rig, field: str) -> None:
    assert rig.run("stop_drop", field=field) == ["LIFTED"]


def flags(rig: Rig) -> list[str | None]:
    return [rig.client.hget(key, "stops") for key in (rig.keys.bells, rig.keys.room)]


def test_claims_and_submits_look_while_anything_is_stopped(rig: Rig) -> None:
    assert flags(rig) == [None, None]
    one, other = stop(rig, "tool send_email"), stop(rig, "brain shop", mode="forbid")
    assert flags(rig) == ["1", "1"]
    assert rig.client.hget(rig.keys.stopped, one).startswith("pause 0 {")
    lift(rig, one)
    assert flags(rig) == ["1", "1"]
    lift(rig, other)
    assert flags(rig) == [None, None]


def test_it_ends_by_itself_where_it_has_an_end(rig: Rig) -> None:
    field = stop(rig, "tool send_email", remaining_ms=5_000)
    assert rig.client.hget(rig.keys.stopped, field).startswith(f"pause {rig.now_ms + 5_000} {{")


def test_the_same_field_again_is_changed(rig: Rig) -> None:
    stop(rig, "tool send_email")
    field = stop(rig, "tool send_email", mode="forbid")
    assert rig.client.hlen(rig.keys.stopped) == 1
    assert rig.client.hget(rig.keys.stopped, field).startswith("forbid 0 ")


def test_all_of_it_has_a_lifetime(rig: Rig) -> None:
    stop(rig, "tool send_email")
    for key in (rig.keys.stopped, rig.keys.bells, rig.keys.room):
        assert KEPT_MS - 2_000 <= rig.client.pttl(key) <= KEPT_MS


def test_a_process_that_knew_of_none_hears_of_one(rig: Rig) -> None:
    here, elsewhere = (RedisStops(rig.scripts, listen=lambda: None) for _ in range(2))
    assert here.in_force() == ()
    elsewhere.put([Stop(kind="tool", name="send_email", mode="pause", by="ann")])
    here.receive_put("")
    assert [stop.name for stop in here.in_force()] == ["send_email"]
