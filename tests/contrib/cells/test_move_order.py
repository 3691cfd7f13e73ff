"""Turns of a session keep their order over a move: what waited while the tenant moved comes before what is submitted to
the new cell afterwards."""

from __future__ import annotations

import json
from typing import Any

import pytest

from brainq.contracts.cell import Placement
from brainq.contracts.people import TurnInput
from brainq.contracts.turn import TurnRequest
from brainq.errors import TenantMoved
from tests.contrib.cells.two import TENANT, TwoCells

SESSION = "acme:1"


def ran(two: TwoCells, cell: str, *messages: str) -> list[str]:
    """These turns of the session end in this cell; in the order they began in."""
    ids = {f"t-acme-1-{message}": message for message in messages}
    two.finish(cell, *ids)
    begun = [bell.args[1] for bell, _ in two.pumps[cell].bells]
    return list(dict.fromkeys(ids[turn] for turn in begun if turn in ids))


def states(two: TwoCells, *messages: str) -> list[str | None]:
    """In the new cell's Redis."""
    return [two.state("b", SESSION, f"t-acme-1-{message}") for message in messages]


def move_with(two: TwoCells, *meanwhile: str, phase: str = "copying") -> None:
    """The tenant moves to b; these are submitted to a when the move is there, and wait."""
    mover = two.mover()

    def watch(step: Any) -> None:
        if step.phase == phase:
            for message in meanwhile:
                two.submit("a", SESSION, message)

    mover.watch = watch
    assert mover.move(TENANT, "b").phase == "done"


def compare(two: TwoCells) -> None:
    """As b's sweeper does now and then."""
    two.b.wiring.state.redis.delete(two.b.wiring.state.keys.sweeping)
    two.b.wiring.sweeper.compare()


def test_a_turn_that_waited_while_its_tenant_moved_comes_before_one_after_the_move(two: TwoCells) -> None:
    move_with(two, "first", "second")
    assert states(two, "first", "second") == [None, None]
    two.submit("b", SESSION, "third")
    assert states(two, "first", "second", "third") == ["active", "queued", "queued"]
    assert two.b.wiring.state.sessions.waiting(SESSION) == ["t-acme-1-second", "t-acme-1-third"]
    assert ran(two, "b", "first", "second", "third") == ["first", "second", "third"]


def test_what_a_front_does_to_the_later_one_queues_the_earlier_first(two: TwoCells) -> None:
    """Both waited; the later one is asked for before any sweep."""
    move_with(two, "first", "second")
    request = two.b.wiring.store.turns.request("t-acme-1-second")
    assert request is not None
    two.b.wiring.people.turn_queue.queue_again(request)
    assert states(two, "first", "second") == ["active", "queued"]


def test_rows_that_came_after_the_copy_are_there_before_the_new_cell_is_opened(two: TwoCells) -> None:
    """Its SQL has them by then, so that whoever submits next finds them."""
    mover, seen = two.mover(), list[bool]()

    def watch(step: Any) -> None:
        if step.phase == "flipping":
            two.submit("a", SESSION, "first")
        if step.phase == "cleaning":
            seen.append(two.b.wiring.store.turns.get("t-acme-1-first") is not None)
            two.submit("b", SESSION, "second")

    mover.watch = watch
    mover.move(TENANT, "b")
    assert seen == [True]
    assert states(two, "first", "second") == ["active", "queued"]


def test_one_that_is_sent_after_its_tenant_comes_before_later_ones(two: TwoCells) -> None:
    """Its front had asked the old cell before the tombstone was there; b's sweeper has long had its look."""
    move_with(two)
    compare(two)
    assert two.side("b").tombstones.of(TENANT) is None
    late = TurnRequest(turn_id="t-acme-1-first", session_id=SESSION, user_message="first", request_key="first")
    two.a.wiring.store.turns.accept(late)
    two.a.wiring.people.turn_queue.queue(late)
    two.submit("b", SESSION, "second")
    assert states(two, "first", "second") == ["active", "queued"]


def test_a_sweeper_queues_all_and_then_nobody_looks_any_more(two: TwoCells) -> None:
    move_with(two, "first", "second")
    assert two.side("b").tombstones.arrivals().keys() == {TENANT}
    compare(two)
    assert states(two, "first", "second") == ["active", "queued"]
    assert two.side("b").tombstones.arrivals() == {}
    assert two.b.wiring.tenants.look(SESSION) is None
    assert two.side("b").words.all() == {}


def test_while_the_tenant_is_about_to_move_on_everything_waits(two: TwoCells) -> None:
    """Redis says so, and SQL does not yet: a later turn does not pass the one that cannot be queued."""
    move_with(two, "first")
    side = two.side("b")
    (mark,) = side.tombstones.arrivals().values()
    side.words.put(TENANT, Placement("", 3))
    two.submit("b", SESSION, "second")
    two.b.sweep_part("queue the turns of tenants that have arrived")
    assert states(two, "first", "second") == [None, None]
    assert side.tombstones.arrivals() == {TENANT: mark}
    compare(two)  # SQL knows of no such move: the word goes, and all is queued in order
    assert states(two, "first", "second") == ["active", "queued"]


def test_what_moves_back_keeps_its_order(two: TwoCells) -> None:
    move_with(two, "first")
    two.mover().move(TENANT, "a")
    try:
        two.submit("b", SESSION, "second")
    except TenantMoved as moved:
        two.submit(moved.cell, SESSION, "second")
    assert [two.state("a", SESSION, f"t-acme-1-{one}") for one in ("first", "second")] == ["active", "queued"]


def mailbox(two: TwoCells, turn_id: str) -> list[str]:
    redis, keys = two.b.wiring.state.redis, two.b.wiring.state.keys
    found: Any = redis.lrange(f"{keys.turn(SESSION, turn_id)}:mailbox", 0, -1)
    return [json.loads(item)["client_message_id"] for item in found]


@pytest.mark.parametrize("is_swept", [False, True])
def test_input_that_waited_comes_before_what_is_sent_after_the_move(two: TwoCells, *, is_swept: bool) -> None:
    turn_id = two.submit("a", SESSION, "write x").turn_id
    two.a.drain()
    mover = two.mover()

    def watch(step: Any) -> None:
        if step.phase == "copying":
            two.a.wiring.people.inputs.send(SESSION, turn_id, TurnInput(client_message_id="m1", text="first"))

    mover.watch = watch
    mover.move(TENANT, "b")
    if is_swept:
        compare(two)
        assert two.side("b").tombstones.arrivals() == {}
    two.b.wiring.people.inputs.send(SESSION, turn_id, TurnInput(client_message_id="m2", text="second"))
    assert mailbox(two, turn_id) == ["m1", "m2"]
