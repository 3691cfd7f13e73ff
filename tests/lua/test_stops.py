"""The scripts of stops."""

from __future__ import annotations

import json
from typing import Any

import pytest

from brainq.adapters.celery.names import TURNS_QUEUE, tool_queue
from brainq.adapters.redis.stops import RedisStops
from brainq.contracts.status import Effect
from brainq.contracts.stop import Stop
from tests.lua.rig import SID, TID, TIMEOUT_MS, WRITE, Rig

# lib/stops.lua: what claims, submits and looks do about what operators have stopped.


DAY_MS = 86_400_000
READS = tool_queue(Effect.READ_ONLY)
ACME = {"sid": "acme:s1"}


def result(rig: Rig, call: str = "c1-0") -> str:
    return json.loads(rig.client.hget(rig.names(TID)["trace"], f"{call}:msg"))["content"]


@pytest.mark.parametrize("plan", [{}, WRITE])
def test_a_paused_call_is_parked_and_goes_on_when_it_is_lifted(rig: Rig, plan: dict[str, Any]) -> None:
    rig.committed(plan)
    field = stop(rig, "tool tool")
    assert rig.run("call_claim") == ["DROP", "stopped"]
    assert (rig.status(), rig.turn()["state"], rig.turn()["awaits"]) == ("parked", "parked", "people")
    rig.pass_ms(TIMEOUT_MS + 1)
    assert rig.run("turn_sweep")[2] == ""
    assert rig.look_in_ms() == 60_000
    assert rig.run("waits_expire") == ["NONE"]
    lift(rig, field)
    assert rig.run("turn_sweep")[2] == "expire"
    assert rig.run("waits_expire") == ["EXPIRED"]
    assert (rig.status(), rig.turn()["state"]) == ("dispatched", "active")
    assert rig.run("call_claim")[0] == "GO"


def test_a_forbidden_call_is_denied_with_words_for_the_model(rig: Rig) -> None:
    rig.committed(WRITE)
    stop(rig, "tool tool", mode="forbid")
    rig.bells(TURNS_QUEUE)
    assert rig.run("call_claim") == ["DROP", "stopped"]
    assert rig.status() == "denied"
    assert rig.client.hget(rig.names(TID)["trace"], "c1-0:detail") == "stop"
    assert rig.bells(TURNS_QUEUE) == [[SID, TID, 1]]
    assert [message["content"] for message in rig.history() if message["role"] == "tool"] == [
        "Not run: tool tool is forbidden by ann: wrong prices. Do not call it again in this turn."
    ]


def test_others_of_its_wave_go_on_and_it_waits_beside_them(rig: Rig) -> None:
    rig.committed({"tool": "send"}, {"index": 1})
    field = stop(rig, "tool send")
    assert rig.run("call_claim") == ["DROP", "stopped"]
    assert (rig.status(), rig.turn()["state"]) == ("parked", "active")
    assert rig.run("call_claim", call="c1-1", owner="w2")[0] == "GO"
    rig.bells(READS)
    assert rig.run("call_settle", call="c1-1", owner="w2") == ["SETTLED"]
    assert (rig.status(), rig.turn()["state"], rig.bells(READS)) == ("parked", "parked", [])
    lift(rig, field)
    rig.run("waits_expire")
    assert (rig.status(), len(rig.bells(READS))) == ("dispatched", 1)


def test_a_pause_that_becomes_a_ban_denies_what_waits(rig: Rig) -> None:
    rig.committed(WRITE)
    stop(rig, "tool tool")
    rig.run("call_claim")
    stop(rig, "tool tool", mode="forbid")
    assert rig.run("turn_sweep")[2] == "expire"
    rig.run("waits_expire")
    assert rig.status() == "denied"


def test_a_pause_of_a_day_denies_what_waits(rig: Rig) -> None:
    rig.committed(WRITE)
    stop(rig, "tool tool", keep_ms=DAY_MS)
    rig.run("call_claim")
    rig.pass_ms(DAY_MS)
    assert rig.run("turn_sweep")[2] == "expire"
    rig.run("waits_expire")
    assert rig.status() == "denied"


def test_an_end_of_its_own_lifts_it(rig: Rig) -> None:
    rig.committed(WRITE)
    stop(rig, "tool tool", remaining_ms=7_000)
    rig.run("call_claim")
    rig.pass_ms(7_000)
    assert rig.run("turn_sweep")[2] == "expire"
    rig.run("waits_expire")
    assert rig.run("call_claim")[0] == "GO"


@pytest.mark.parametrize(
    ("what", "tenant", "meets"),
    [
        ("tool github__open", "", True),
        ("server github", "", True),
        ("brain shop", "", True),
        ("brain lab", "", False),
        ("tenant acme:", "", True),
        ("tenant bolt:", "", False),
        ("tool github__open", "acme:", True),
        ("server github", "bolt:", False),
        ("model openai:gpt-5", "", False),
    ],
)
def test_a_call_meets_its_tool_server_brain_and_tenant(rig: Rig, what: str, tenant: str, meets: bool) -> None:
    rig.active(**ACME)
    assert rig.run("turn_claim", fence=0, **ACME)[0] == "GO"
    calls = json.dumps([call(tool="github__open")])
    rig.run("step_commit", item='{"role":"assistant"}', calls=calls, **ACME)
    stop(rig, what, tenant)
    assert rig.run("call_claim", brains="shop lab", **ACME)[0] == ("DROP" if meets else "GO")


def call(**given: Any) -> dict[str, Any]:
    from tests.lua.rig import planned

    return planned(**given)


def test_an_attempt_that_may_have_begun_is_not_said_to_be_denied(rig: Rig) -> None:
    rig.running(again="1", **WRITE)
    rig.pass_ms(10_000)
    rig.run("call_next_attempt")
    stop(rig, "tool tool", mode="forbid")
    assert rig.run("call_claim", attempt=2) == ["DROP", "stopped"]
    assert rig.status() == "unknown"


def test_a_claim_of_a_turn_says_what_is_stopped(rig: Rig) -> None:
    rig.active()
    stop(rig, "brain shop")
    stop(rig, "model gpt-5", remaining_ms=1)
    rig.pass_ms(1)
    stops = json.loads(rig.run("turn_claim", fence=0)[4])
    assert [text.split(" ", 2)[0] for text in stops] == ["pause"]
    assert json.loads(stops[0].split(" ", 2)[2])["name"] == "shop"


def paused(rig: Rig, field: str, **given: Any) -> None:
    waits = {"after_ms": DAY_MS, "wait_ms": DAY_MS, "why": "brain shop"}
    assert rig.run("turn_wait", stop=field, **waits, **given) == ["WAITS"]


@pytest.mark.parametrize("step", ["0", "1"])
def test_a_paused_turn_waits_and_goes_on_when_it_is_lifted(rig: Rig, step: str) -> None:
    rig.owned()
    rig.client.hset(rig.names(TID)["turn"], "step", step)
    field = stop(rig, "brain shop")
    paused(rig, field)
    rig.bells(TURNS_QUEUE)
    rig.pass_ms(TIMEOUT_MS * 3)
    rig.run("turn_sweep")
    assert (rig.bells(TURNS_QUEUE), rig.look_in_ms()) == ([], 5_000)
    lift(rig, field)
    rig.run("turn_sweep")
    assert rig.bells(TURNS_QUEUE) == [[SID, TID, 1]]
    rig.pass_ms(1_000)
    assert rig.run("turn_claim", owner="w2", fence=1)[0] == "GO"
    left_ms = int(rig.client.hget(rig.names(TID)["budget"], "deadline")) - rig.now_ms
    assert left_ms == (TIMEOUT_MS if step == "0" else TIMEOUT_MS - 1_000)
    assert "stop" not in rig.turn()


def test_what_was_lifted_before_the_turn_waits_lets_it_go_on(rig: Rig) -> None:
    rig.owned()
    field = stop(rig, "brain shop")
    lift(rig, field)
    rig.bells(TURNS_QUEUE)
    paused(rig, field)
    assert rig.look_in_ms() == 0
    rig.run("turn_sweep")
    assert len(rig.bells(TURNS_QUEUE)) == 1


def test_nobody_stops_anything_and_no_command_is_made_for_it(rig: Rig) -> None:
    def count(*names: str) -> int:
        stats = rig.client.info("commandstats")
        return sum(stats.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in names)

    rig.client.config_resetstat()
    rig.committed({}, WRITE | {"index": 1, "wave": 2})
    rig.run("call_claim")
    assert count("hvals") == 0
    field = stop(rig, "tool other")
    rig.client.config_resetstat()
    rig.run("call_claim")
    before = count("hmget")
    lift(rig, field)
    rig.client.config_resetstat()
    rig.run("call_claim")
    assert count("hmget") <= before


def test_a_call_waits_a_day_from_its_first_stop_whatever_it_meets_after_it(rig: Rig) -> None:
    rig.committed(WRITE)
    field = stop(rig, "tool tool", keep_ms=2 * DAY_MS)
    rig.run("call_claim")
    rig.pass_ms(DAY_MS // 2)
    lift(rig, field)
    rig.run("waits_expire")
    other = stop(rig, "tenant :", keep_ms=2 * DAY_MS)
    assert rig.run("call_claim") == ["DROP", "stopped"]
    assert rig.client.hget(rig.names(TID)["trace"], "c1-0:stop") == other
    rig.pass_ms(DAY_MS // 2)
    rig.run("waits_expire")
    assert rig.status() == "denied"


def test_one_that_forbids_is_met_before_one_that_pauses(rig: Rig) -> None:
    rig.committed(WRITE)
    stop(rig, "tool tool")
    stop(rig, "tenant :", mode="forbid")
    rig.run("call_claim")
    assert rig.status() == "denied"


# stop_put.lua: what operators stop by name is known to every claim at once, until it is lifted.


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


# stop_drop.lua: what operators had stopped goes on, and no claim looks where nothing is stopped any more.


def test_the_last_one_to_be_lifted_ends_the_looking(rig: Rig) -> None:
    one, other = stop(rig, "tool send_email"), stop(rig, "brain shop")
    assert rig.run("stop_drop", field=one) == ["LIFTED"]
    assert flags(rig) == ["1", "1"]
    assert rig.run("stop_drop", field=other) == ["LIFTED"]
    assert flags(rig) == [None, None]


def test_what_is_not_stopped_is_not_lifted(rig: Rig) -> None:
    assert rig.run("stop_drop", field="tool send_email ") == ["ABSENT"]
