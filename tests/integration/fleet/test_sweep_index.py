"""Who is looked at, and when: no look is lost with the process that would have asked for it (P2)."""

from __future__ import annotations

import time
from typing import Any

import pytest

from brainq.client.handle import TurnHandle
from brainq.engine.models.scripted import calls, says
from tests.support.brains.obedient import script
from tests.support.people import Pumps, Watched, brain_of, turn_field
from tests.support.pump import Pump
from tests.support.wait import wait_until

WRITE = calls(("write", {"name": "b"}))
SELDOM_S = 15 * 60.0


def due_in_s(pump: Pump, handle: TurnHandle) -> float | None:
    client: Any = pump.wiring.state.redis
    at_ms = client.zscore(pump.wiring.state.keys.index, f"{handle.session_id} {handle.turn_id}")
    return None if at_ms is None else at_ms / 1000 - time.time()


def ends_by_what_is_due(pump: Pump, handle: TurnHandle) -> None:
    """The turn ends, though only what its scripts made due is looked at."""

    def over() -> bool:
        pump.drain()
        pump.wiring.sweeper.sweep()
        return turn_field(pump, handle, "awaits") == "nobody"

    wait_until(over, "the turn is over", timeout_s=30)


def parked(pump: Pump) -> tuple[TurnHandle, Any]:
    """A turn that waiting for the release of a hold, and was looked at since."""
    handle = pump.submit("s1", "Go.")
    hold = handle.hold(expires_in_s=86_400)
    pump.drain()
    assert turn_field(pump, handle, "state") == "parked"
    pump.sweep()
    due_s = due_in_s(pump, handle)
    assert due_s is not None
    assert due_s > SELDOM_S - 60, "nothing is due in it before the hold ends"
    return handle, hold


def test_a_parked_turn_goes_on_though_its_doorbell_is_lost_and_nobody_asked_for_a_look(pumps: Pumps) -> None:
    ran: list[str] = []
    pump = pumps(brain_of(Watched(WRITE, says("done")), ran))
    handle, _ = parked(pump)
    (standing,) = handle.holds()
    # All that whoever released it did: then its process died, and the doorbell was lost with it.
    assert pump.wiring.store.brakes.end("s1", standing.id)
    assert pump.wiring.state.holds.release("s1", handle.turn_id, standing.id) == "RELEASED"
    while pump.take():
        pass
    due_s = due_in_s(pump, handle)
    assert due_s is not None
    assert due_s < 1
    ends_by_what_is_due(pump, handle)
    assert ran


def test_a_look_asked_for_while_the_turn_was_looked_at_is_not_put_off(
    pumps: Pumps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the sweeper keeps the turn from others for less long than the look is away."""
    pump = pumps(brain_of(Watched(WRITE, says("done"))))
    handle, _ = parked(pump)
    index: Any = pump.wiring.state.sweeper
    index.list_again([(handle.session_id, handle.turn_id)])
    look, placed = index.look, list[Any]()

    def meanwhile(_: Any, turns: Any) -> Any:
        found = look(turns)
        placed.append(handle.hold(expires_in_s=30))
        return found

    monkeypatch.setattr(type(index), "look", meanwhile)
    pump.wiring.sweeper.sweep()
    assert placed
    due_s = due_in_s(pump, handle)
    assert due_s is not None
    assert due_s < 31, "nobody would look when the hold ends"


def test_a_turn_that_lost_its_place_in_the_index_is_looked_at_again(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(WRITE, says("done"))))
    handle = pump.submit("s1", "Go.")
    client: Any = pump.wiring.state.redis
    client.delete(pump.wiring.state.keys.index)
    while pump.take():
        pass
    pump.sweep()
    assert not pump.waiting(), "nobody would ever look at it"
    assert pump.wiring.sweeper.checks.lost_turns.compare(0).healed == 1
    ends_by_what_is_due(pump, handle)


def test_a_hold_is_looked_at_when_it_ends(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(WRITE, says("done"))))
    handle, _ = parked(pump)
    handle.hold(expires_in_s=0.2, on_expiry="cancel")
    ends_by_what_is_due(pump, handle)
    assert handle.result(timeout_s=1).ending == "cancelled"


def test_a_turn_that_is_over_is_not_looked_at(pump: Pump) -> None:
    handle = pump.submit("s1", script(final="x"))
    pump.drain()
    assert turn_field(pump, handle, "awaits") == "nobody"
    assert due_in_s(pump, handle) is None


def test_redis_has_another_epoch_once_it_was_emptied(pump: Pump) -> None:
    before = pump.wiring.state.sweeper.epoch()
    assert pump.wiring.state.sweeper.epoch() == before
    pump.wiring.state.redis.flushall()
    assert pump.wiring.state.sweeper.epoch() != before


def test_one_sweeper_compares_until_it_no_longer_asks(pumps: Pumps) -> None:
    state, beside = (pumps(brain_of(Watched(WRITE, says("done")))).wiring.state for _ in range(2))
    one, other = state.sweeper, beside.sweeper
    assert one.take_comparing(60.0)
    assert not other.take_comparing(60.0)
    assert one.take_comparing(60.0)
    assert 0 < state.redis.pttl(state.keys.sweeping) <= 60_000
    state.redis.delete(state.keys.sweeping)  # it asked no more for so long
    assert other.take_comparing(60.0)
    assert not one.take_comparing(60.0)
