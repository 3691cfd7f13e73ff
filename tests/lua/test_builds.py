"""Which build may go on with a turn: the format of its state, the pin of its brain, and where a doorbell goes that came
to another one (lib/refusal, lib/pass_on, lib/builds).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lua.rig import LEASE_MS, SID, TID, TIMEOUT_MS, Rig
from tests.support.server import RedisServer

OLD, NEW = "d01d", "0e00"
DAY_MS = 86_400_000


def declared(build: str, digest: str, pin: str = "turn", **more: Any) -> str:
    return json.dumps({"build": build, "brains": {"": {"digest": digest, "pin": pin}}, **more})


OF_OLD = {"brains": f"shop #{OLD}", "declared": declared("old", OLD)}
OF_NEW = {"brains": f"shop #{NEW}", "declared": declared("new", NEW)}


def serve(rig: Rig, queue: str, digest: str, build: str, *, ago_ms: int = 0) -> None:
    rig.client.set(f"{rig.keys.prefix}serves:{queue}:{digest}", build, px=DAY_MS - ago_ms)


def bells_of(rig: Rig, queue: str) -> list[dict[str, Any]]:
    found = rig.client.lrange(f"{rig.keys.prefix}{queue}", 0, -1)
    return [json.loads(text) for text in reversed(found)]


@pytest.fixture(scope="module")
def one_later(redis_server: RedisServer) -> Iterator[Rig]:
    rig = Rig(redis_server.url, of_format=(2, 1))
    yield rig
    rig.close()


@pytest.fixture
def later(rig: Rig, one_later: Rig) -> Rig:
    """The scripts of a build that writes format 2, and reads 1, too."""
    one_later.begin()
    return one_later


# The format of the state.


def test_a_turn_of_format_1_does_not_say_so(rig: Rig) -> None:
    rig.active()
    rig.run("turn_claim", fence=0)
    assert not {"format", "pin", "pin_build", "builds", "passed"} & rig.turn().keys()


def test_a_build_takes_no_turn_whose_state_it_does_not_read(rig: Rig, later: Rig) -> None:
    later.active()
    assert rig.turn()["format"] == "2"
    assert rig.run("turn_claim", fence=0) == ["DROP", "other_format"]
    assert later.run("turn_claim", fence=0)[0] == "GO"


def test_not_even_to_end_it(rig: Rig, later: Rig) -> None:
    later.active()
    rig.pass_ms(TIMEOUT_MS + 2001)
    rig.run("turn_cancel")
    rig.pass_ms(2001)
    assert rig.run("turn_claim", fence=0) == ["DROP", "other_format"]


def test_nor_a_call_nor_a_finalizer_step_of_it(rig: Rig, later: Rig) -> None:
    later.committed({})
    assert rig.run("call_claim") == ["DROP", "other_format"]
    assert later.run("call_claim")[0] == "GO"
    rig.client.flushdb()
    later.begin()
    later.closing()
    assert rig.run("finalize_claim", step="log") == ["DROP", "other_format"]
    rig.pass_ms(400_000)
    assert rig.run("finalize_claim", step="log") == ["DROP", "other_format"]
    assert later.run("finalize_claim", step="log")[0] == "GO"


def test_its_doorbell_goes_to_the_queue_of_those_that_read_it_once(rig: Rig, later: Rig) -> None:
    later.active()
    rig.bells("brainq.turns")
    for _ in range(3):  # copies of the bell
        rig.run("turn_claim", fence=0)
    (bell,) = bells_of(rig, "brainq.turns@format-2")
    assert json.loads(bell["body"])[0] == [SID, TID, 0]
    assert bell["properties"]["delivery_info"]["routing_key"] == "brainq.turns@format-2"
    assert rig.lifetimes()[f"{rig.keys.prefix}brainq.turns@format-2"] > 0


def test_a_newer_build_reads_the_older_format_and_what_follows_is_of_its_own(rig: Rig, later: Rig) -> None:
    rig.active()
    rig.run("turn_submit", tid="t02")
    assert later.run("turn_claim", fence=0)[0] == "GO"
    assert (rig.turn()["format"], rig.turn("t02")["format"]) == ("2", "2")
    rig.run("turn_submit", tid="t03")  # by an older build, into a session whose history is newer
    assert rig.turn("t03")["format"] == "2"


def test_an_older_sweeper_leaves_such_a_turn_alone(rig: Rig, later: Rig) -> None:
    later.active()
    rig.bells("brainq.turns")
    rig.pass_ms(TIMEOUT_MS * 2)
    assert rig.run("turn_sweep")[:3] == ["LOOK", 0, ""]
    assert rig.bells("brainq.turns") == []
    assert later.run("turn_sweep")[2] == "end"


# The pin of a brain.


def test_a_turn_keeps_to_the_brain_that_began_it(rig: Rig) -> None:
    rig.active()
    assert rig.run("turn_claim", fence=0, **OF_OLD)[0] == "GO"
    assert (rig.turn()["pin"], rig.turn()["pin_build"], rig.turn()["builds"]) == (OLD, "old", f"old#{OLD}")
    rig.pass_ms(LEASE_MS)
    assert rig.run("turn_claim", fence=1, owner="w2", **OF_NEW) == ["DROP", "other_build"]
    assert rig.run("turn_claim", fence=1, owner="w2", brains="shop") == ["DROP", "other_build"]
    assert rig.run("turn_claim", fence=1, owner="w2", **OF_OLD)[0] == "GO"


def test_another_build_with_the_same_brain_goes_on_with_it(rig: Rig) -> None:
    rig.active()
    rig.run("turn_claim", fence=0, **OF_OLD)
    rig.pass_ms(LEASE_MS)
    same = {"brains": f"shop #{OLD}", "declared": declared("newer", OLD)}
    assert rig.run("turn_claim", fence=1, owner="w2", **same)[0] == "GO"
    assert rig.turn()["builds"] == f"old#{OLD} newer#{OLD}"


def test_an_unpinned_turn_goes_on_and_says_with_what(rig: Rig) -> None:
    rig.active()
    rig.run("turn_claim", fence=0, brains="shop #a", declared=declared("old", "a", ""))
    rig.pass_ms(LEASE_MS)
    assert rig.run("turn_claim", fence=1, owner="w2", brains="shop #b", declared=declared("new", "b", ""))[0] == "GO"
    assert "pin" not in rig.turn()
    assert rig.turn()["builds"] == "old#a new#b"


def test_a_turn_that_an_unpinned_brain_began_is_pinned_by_nothing_later(rig: Rig) -> None:
    rig.active()
    rig.run("turn_claim", fence=0, brains="shop #a", declared=declared("old", "a", ""))
    rig.pass_ms(LEASE_MS)
    rig.run("turn_claim", fence=1, owner="w2", **OF_NEW)
    assert "pin" not in rig.turn()


def test_a_session_keeps_to_it_with_what_waits_and_what_comes(rig: Rig) -> None:
    rig.active()
    rig.run("turn_submit", tid="t02")
    rig.run("turn_claim", fence=0, brains=f"shop #{OLD}", declared=declared("old", OLD, "session"))
    serve(rig, "turns", OLD, "old")
    rig.run("turn_submit", tid="t03")
    assert [rig.turn(tid)["pin"] for tid in (TID, "t02", "t03")] == [OLD] * 3


def test_a_cancelled_turn_is_given_to_another_build_to_be_ended(rig: Rig) -> None:
    rig.active()
    rig.run("turn_claim", fence=0, **OF_OLD)
    rig.pass_ms(LEASE_MS)
    rig.run("turn_cancel")
    reply = rig.run("turn_claim", fence=1, owner="w2", **OF_NEW)
    assert (reply[0], reply[5]) == ("GO", "1")
    assert rig.turn()["builds"] == f"old#{OLD}"


def test_its_doorbell_goes_to_the_build_that_has_the_brain_once(rig: Rig) -> None:
    rig.active()
    rig.run("turn_claim", fence=0, **OF_OLD)
    rig.pass_ms(LEASE_MS)
    serve(rig, "turns", OLD, "old")
    serve(rig, "turns", "@old", "old")
    rig.bells("brainq.turns")
    for _ in range(3):
        assert rig.run("turn_claim", fence=1, owner="w2", **OF_NEW) == ["DROP", "other_build"]
    (bell,) = bells_of(rig, "brainq.turns@old")
    assert json.loads(bell["body"])[0] == [SID, TID, 1]
    rig.client.hset(rig.names(TID)["turn"], "owner", "")
    rig.pass_ms(5_000)
    rig.run("turn_sweep")
    assert rig.bells("brainq.turns") == []  # it waits there
    assert rig.run("turn_claim", fence=1, owner="w3", **OF_OLD)[0] == "GO"


def test_where_nobody_has_the_brain_the_bell_is_not_rung_again_and_again(rig: Rig) -> None:
    rig.active()
    rig.run("turn_claim", fence=0, **OF_OLD)
    rig.run("turn_release", owner="w1", fence=1)
    rig.client.hset(rig.names(TID)["turn"], "owner", "")
    rig.bells("brainq.turns")
    rig.run("turn_claim", fence=1, owner="w2", **OF_NEW)
    assert not rig.client.keys("*brainq.turns*")
    rig.pass_ms(20_000)
    rig.run("turn_sweep")
    assert rig.bells("brainq.turns") == []
    serve(rig, "turns", OLD, "old")
    rig.run("turn_sweep")
    assert rig.bells("brainq.turns") == [[SID, TID, 1]]


def test_a_bell_in_the_queue_of_a_build_that_is_gone_is_rung_again(rig: Rig) -> None:
    rig.active()
    rig.run("turn_claim", fence=0, **OF_OLD)
    rig.client.hset(rig.names(TID)["turn"], "owner", "")
    for digest in (OLD, "@old"):
        serve(rig, "turns", digest, "old")
    rig.run("turn_claim", fence=1, owner="w2", **OF_NEW)
    rig.bells("brainq.turns")
    rig.pass_ms(20_000)
    for digest in (OLD, "@old"):
        serve(rig, "turns", digest, "old", ago_ms=20_000)
    for digest in (NEW, "@new"):
        serve(rig, "turns", digest, "new")
    rig.client.hset(f"{rig.keys.prefix}released", OLD, NEW)
    rig.run("turn_sweep")
    assert rig.bells("brainq.turns") == [[SID, TID, 1]]


@pytest.mark.parametrize("effect", ["read_only", "network"])
def test_a_call_goes_to_the_build_that_began_the_turn(rig: Rig, effect: str) -> None:
    rig.committed({"effect": effect})
    rig.client.hset(rig.names(TID)["turn"], mapping={"pin": OLD, "pin_build": "old"})
    serve(rig, effect, OLD, "old")
    for _ in range(2):
        assert rig.run("call_claim", brains=f"shop #{NEW}") == ["DROP", "other_build"]
    (bell,) = bells_of(rig, f"brainq.tools.{effect}@old")
    assert json.loads(bell["body"])[0] == [SID, TID, "c1-0", 1]
    assert rig.run("call_claim", brains=f"shop #{OLD}")[0] == "GO"


def test_a_finalizer_step_goes_there_too_and_after_a_while_to_anybody_without_the_brain(rig: Rig) -> None:
    rig.closing()
    rig.client.hset(rig.names(TID)["turn"], mapping={"pin": OLD, "pin_build": "old"})
    serve(rig, "finalize", OLD, "old")
    for _ in range(2):
        assert rig.run("finalize_claim", step="log", brains=f"shop #{NEW}") == ["DROP", "other_build"]
    (bell,) = bells_of(rig, "brainq.finalize@old")
    assert json.loads(bell["body"])[0] == [SID, TID, "log"]
    rig.pass_ms(300_000)
    reply = rig.run("finalize_claim", step="log", brains=f"shop #{NEW}")
    assert (reply[0], reply[6]) == ("GO", "#")


def test_a_turn_of_another_brain_of_the_session_is_not_bound_by_it(rig: Rig) -> None:
    rig.active()
    rig.run("turn_submit", tid="t02", brain="lab")
    rig.run("turn_claim", fence=0, brains=f"shop #{OLD}", declared=declared("old", OLD, "session"))
    serve(rig, "turns", OLD, "old")
    rig.run("turn_submit", tid="t03", brain="lab")
    assert "pin" not in rig.turn("t02")
    assert "pin" not in rig.turn("t03")


# What is released, refused and ramped.


def test_a_released_turn_is_the_other_brains_from_then_on(rig: Rig) -> None:
    rig.active()
    rig.run("turn_claim", fence=0, **OF_OLD)
    rig.pass_ms(LEASE_MS)
    rig.client.hset(f"{rig.keys.prefix}released", OLD, NEW)
    assert rig.run("turn_claim", fence=1, owner="w2", **OF_NEW)[0] == "GO"
    assert (rig.turn()["pin"], rig.turn()["builds"]) == (NEW, f"old#{OLD} new#{NEW}")


def test_a_ramp_begins_a_share_of_the_sessions_elsewhere(rig: Rig) -> None:
    for build in ("old", "new"):
        serve(rig, "turns", f"@{build}", build)
    ramp = ["new", "old", 3_000]
    taken: dict[str, int] = {"old": 0, "new": 0}
    for number in range(80):
        sid = f"s{number}"
        rig.run("turn_submit", sid=sid, tid=f"t{number}")
        for name, digest in (("old", OLD), ("new", NEW)):
            said = {"brains": f"shop #{digest}", "declared": declared(name, digest, ramp=ramp)}
            if rig.client.hget(rig.names(f"t{number}", sid)["turn"], "owner") == "":
                reply = rig.run("turn_claim", sid=sid, tid=f"t{number}", fence=0, **said)
                taken[name] += reply[0] == "GO"
    assert sum(taken.values()) == 80
    assert 12 <= taken["new"] <= 40
    assert len(bells_of(rig, "brainq.turns@new")) == taken["new"]


def test_a_ramp_to_a_build_that_is_not_there_changes_nothing(rig: Rig) -> None:
    rig.active()
    said = {"brains": f"shop #{OLD}", "declared": declared("old", OLD, ramp=["new", "old", 10_000])}
    assert rig.run("turn_claim", fence=0, **said)[0] == "GO"
