"""opening_skip.lua: going on without memory and pack."""

from __future__ import annotations

from tests.lua.rig import Rig
from tests.lua.test_turn_open import opened


def test_it_waits_for_its_time(rig: Rig) -> None:
    opened(rig)
    assert rig.run("opening_skip") == ["EARLY"]
    assert rig.status("c0-0") == "dispatched"


def test_open_calls_time_out_and_the_first_step_is_rung(rig: Rig) -> None:
    opened(rig)
    rig.run("call_claim", call="c0-0")
    rig.run("call_settle", call="c0-0")
    rig.run("call_claim", call="c0-1", lease_ms=60_000)
    rig.pass_ms(10_000)
    assert rig.run("turn_sweep")[2] == "skip"
    assert rig.run("opening_skip") == ["SKIPPED"]
    assert [rig.status("c0-0"), rig.status("c0-1")] == ["completed", "timed_out"]
    assert rig.bells("brainq.turns") == [["s1", "t01", 1]]
    assert rig.turn()["awaits"] == "coordinator"


def test_what_comes_later_is_late(rig: Rig) -> None:
    opened(rig)
    rig.run("call_claim", call="c0-1", lease_ms=60_000)
    rig.pass_ms(10_000)
    rig.run("opening_skip")
    history = rig.history()
    assert rig.run("call_settle", call="c0-1") == ["LATE", "timed_out"]
    assert rig.status("c0-1") == "timed_out_late"
    assert rig.history() == history


def test_a_turn_past_it_is_left_alone(rig: Rig) -> None:
    rig.committed({})
    rig.pass_ms(20_000)
    assert rig.run("opening_skip") == ["ALREADY"]
    assert "skip" not in rig.run("turn_sweep")[2]
