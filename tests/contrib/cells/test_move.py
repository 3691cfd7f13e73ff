"""A tenant moves to another cell: all of it is there, nothing is left, and what was parked goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from brainq.contracts.cell import MoveStep, Placement
from brainq.contracts.claim import CallRef
from brainq.contracts.people import HoldSpec, TurnInput
from brainq.contracts.turn import TurnRequest
from brainq.contrib.cells import directory
from brainq.contrib.cells.move import MOST_COPIES
from brainq.errors import BrainqError, InvalidInput, MoveFailed, TenantMoved, TenantMoving
from brainq.workers.tasks.register import submit_foreign
from tests.contrib.cells.two import TENANT, TwoCells, parked_tenant


def go_on(two: TwoCells, cell: str, made: dict[str, str], written: str = "done write x") -> None:
    """Everything that the parked turns wait for comes, in this cell, and each ends once; `written`: what the one that
    writes says then."""
    client = two.pumps[cell].client
    client.approve(f"{made['approval']}-c1-0", by="Ann")
    assert client.complete_call(two.tokens["y"], {"ok": True}) == "settled"
    assert client.handle(made["client"]).give_result("c1-0", {"degrees": 20}) == "settled"
    results = two.finish(cell, *made.values())
    assert [result.text for result in results] == [
        *("done hello", written, "done and then", "done order y", "done weather z")
    ]
    assert sorted(two.ran) == ["a order y", f"{cell} write x"]


def test_everything_is_there_and_nothing_is_left(two: TwoCells) -> None:
    made = parked_tenant(two)
    before, others = two.rows("a"), two.rows("a", "globex:")
    step = two.mover().move(TENANT, "b")
    assert step.phase == "done"
    assert two.rows("b") == before
    assert two.rows("a", "globex:") == others
    two.assert_gone_from("a", "b", 2)
    two.assert_here("b", 2)
    assert [each.phase for each in two.steps if not each.waits_for] == [
        *("claimed", "waiting", "copying", "deciding", "flipping", "cleaning", "done")
    ]
    go_on(two, "b", made)
    assert two.all_rows("a").keys() <= two.rows("a", "globex:").keys() | {"tokens"}


def test_a_request_that_is_repeated_meets_its_first_turn(two: TwoCells) -> None:
    made = parked_tenant(two)
    two.mover().move(TENANT, "b")
    again = two.submit("b", "acme:1", "hello", request_key="k-ended", turn_id="t-other")
    assert (again.turn_id, again.created) == (made["ended"], False)
    with pytest.raises(TenantMoved) as moved:
        two.submit("a", "acme:1", "hello", request_key="k-ended", turn_id="t-other")
    assert (moved.value.cell, moved.value.epoch) == ("b", 2)


def test_it_moves_back(two: TwoCells) -> None:
    made = parked_tenant(two)
    before = two.rows("a")
    two.mover().move(TENANT, "b")
    two.mover().move(TENANT, "a")
    assert two.rows("a") == before
    two.assert_gone_from("b", "a", 3)
    two.assert_here("a", 3)
    go_on(two, "a", made)
    assert two.mover().move(TENANT, "a").phase == "done"


def test_input_that_no_step_has_read_goes_along(two: TwoCells) -> None:
    made = parked_tenant(two)
    two.a.wiring.people.inputs.send("acme:2", made["approval"], TurnInput(client_message_id="m1", text="more"))
    two.mover().move(TENANT, "b")
    go_on(two, "b", made, "done more [Sent while you were working on the task above, which goes on.]")
    receipt = two.b.wiring.people.inputs.receipt("acme:2", "m1")
    assert (receipt.state, receipt.turn_id) == ("consumed", made["approval"])


def test_a_turn_that_does_not_end_in_time_keeps_its_tenant_where_it_is(two: TwoCells) -> None:
    made = parked_tenant(two)
    busy = two.submit("a", "acme:9", "hello").turn_id
    before = two.rows("a")
    with pytest.raises(MoveFailed, match=rf"stays in cell 'a': 1 turns did not end or park .*{busy}"):
        two.mover(wait_s=0.0).move(TENANT, "b")
    two.assert_here("a", 1)
    assert two.rows("a") == before
    assert (two.rows("b"), two.keys("b")) == ({}, [])
    assert two.side("b").tombstones.of(TENANT) == Placement("a", 1)
    go_on(two, "a", made)
    two.finish("a", busy)


def test_what_comes_while_it_moves_waits_and_is_run_once_in_the_new_cell(two: TwoCells) -> None:
    made = parked_tenant(two)
    mover = two.mover()

    def submit_meanwhile(step: object) -> None:
        at = len(two.steps)
        two.steps.append(step)  # pyright: ignore[reportArgumentType]
        try:
            two.submit("a", f"acme:new-{at}", "hello", request_key=f"new-{at}")
        except TenantMoved as moved:
            two.submit(moved.cell, f"acme:new-{at}", "hello", request_key=f"new-{at}")

        two.a.drain()  # what began before the tenant was about to move ends

    mover.watch = submit_meanwhile
    mover.move(TENANT, "b")
    two.assert_gone_from("a", "b", 2)
    new = [f"t-acme-new-{at}-hello" for at in range(len(two.steps))]
    go_on(two, "b", made)
    assert [result.text for result in two.finish("b", *new)] == ["done hello"] * len(new)


def test_what_is_done_to_turns_that_are_copied_is_refused_for_a_while_and_lost_never(two: TwoCells) -> None:
    made, stopped = parked_tenant(two), two.submit("a", "acme:5", "order q").turn_id
    two.a.drain()
    people, approval = two.a.wiring.people, f"{made['approval']}-c1-0"
    acts: list[Callable[[], object]] = [
        lambda: people.approvals.approve(approval, by="Ann"),
        lambda: people.outside.complete(two.tokens["y"], {"ok": True}),
        lambda: people.outside.give_result(CallRef("acme:4", made["client"], "c1-0"), {"degrees": 20}),
        lambda: people.brakes.hold("acme:2", made["approval"], HoldSpec(id="h1")),
        lambda: people.brakes.cancel("acme:5", stopped, "enough"),
    ]
    raised: dict[str, list[type[Exception]]] = {}
    mover = two.mover()

    def act(step: MoveStep) -> None:
        if step.phase in ("deciding", "cleaning"):
            assert people.approvals.get(approval).state == "pending"
            for one in acts:
                with pytest.raises(BrainqError) as refused:
                    one()
                raised.setdefault(step.phase, []).append(refused.type)

    mover.watch = act
    mover.move(TENANT, "b")
    assert raised == {"deciding": [TenantMoving] * len(acts), "cleaning": [TenantMoved] * len(acts)}
    assert two.finish("b", stopped)[0].ending == "cancelled"
    two.ran.remove("a order q")
    go_on(two, "b", made)


def test_a_front_that_knows_nothing_of_a_move_finds_by_its_id_what_has_moved(
    two: TwoCells, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An id may name no cell: that of a child's turn, or one that was chosen."""
    monkeypatch.setattr(directory, "FRESH_S", 3600.0)
    made, front = parked_tenant(two), two.a.client
    approval = f"{made['approval']}-c1-0"
    assert front.approval(approval).state == "pending"
    two.mover().move(TENANT, "b")
    assert front.approval(approval).state == "pending"
    assert front.handle(made["ended"]).result(5).text == "done hello"
    assert front.find(made["client"]).session_id == "acme:4"
    assert front.approve(approval, by="Ann").state == "approved"


def test_a_row_that_comes_after_the_copy_is_sent_after_it(two: TwoCells) -> None:
    parked_tenant(two)
    two.mover().move(TENANT, "b")
    late = TurnRequest(turn_id="t-late", session_id="acme:1", user_message="late", request_key="late")
    two.a.wiring.store.turns.accept(late)  # its front had asked before the tombstone was there
    two.a.wiring.people.turn_queue.queue(late)
    two.assert_gone_from("a", "b", 2)
    (result,) = two.finish("b", "t-late")
    assert result.text == "done late"


def test_a_cell_that_there_is_not(two: TwoCells) -> None:
    with pytest.raises(InvalidInput, match="'c' is not one of a, b"):
        two.mover().move(TENANT, "c")


def test_a_foreign_message_goes_to_the_cell_of_its_tenant(two: TwoCells) -> None:
    parked_tenant(two)
    two.mover().move(TENANT, "b")
    fields = {"turn_id": "t-foreign", "session_id": "acme:1", "user_message": "hi"}
    assert submit_foreign(two.a.wiring, (), fields) == "t-foreign"
    two.assert_gone_from("a", "b", 2)
    assert submit_foreign(two.a.wiring, (), fields) == "t-foreign"
    (result,) = two.finish("b", "t-foreign")
    assert result.text == "done hi"


def test_a_foreign_message_of_a_tenant_that_never_was_here_is_sent_on_too(two: TwoCells) -> None:
    two.directory.settle("initech:", "a")
    fields = {"turn_id": "t-far", "session_id": "initech:1", "user_message": "hi"}
    assert submit_foreign(two.b.wiring, (), fields) == "t-far"
    assert two.rows("b", "initech:") == {}
    assert two.a.wiring.store.turns.get("t-far") is not None
    near = {"turn_id": "t-near", "session_id": "hooli:1", "user_message": "hi"}
    assert submit_foreign(two.b.wiring, (), near) == "t-near"
    assert two.directory.placement("hooli:") == Placement("b", 1)
    assert two.state("b", "hooli:1", "t-near") == "active"


def test_what_redis_lost_of_a_tombstone_is_put_back(two: TwoCells) -> None:
    two.mover().move(TENANT, "b")
    side = two.side("a")
    redis: Any = two.a.wiring.state.redis
    redis.flushall()
    assert two.a.wiring.tenants.restore() == 1
    assert side.words.of(TENANT) == Placement("b", 2)
    side.words.put("gone:", Placement("", 7))  # of a move that died when SQL had taken it away
    assert two.a.wiring.tenants.restore() == 0
    assert side.words.all() == {TENANT: Placement("b", 2)}


def test_a_child_turn_is_in_the_cell_of_its_parent(two: TwoCells) -> None:
    two.directory.settle("globex:", "b")
    asked = [
        two.submit("a", f"acme:{child}", f"ask {child}:1", turn_id=f"t-{child}").turn_id
        for child in ("globex", "hooli")
    ]
    two.finish("a", *asked)
    refused, made = (two.a.client.handle(turn_id).calls()[0] for turn_id in asked)
    assert (refused.status, made.status) == ("failed", "completed")
    assert "in another cell" in str(refused)
    assert (two.rows("a", "globex:"), two.rows("a", "hooli:")["turns"]) == ({}, 1)
    assert two.directory.placement("hooli:") == Placement("a", 1)


def test_a_session_that_people_paused_stays_paused(two: TwoCells) -> None:
    made = parked_tenant(two)
    assert two.a.client.session("acme:2").pause("wrong prices")
    two.mover().move(TENANT, "b")
    sessions = two.b.wiring.state.sessions
    assert [sessions.why_paused(session) for session in ("acme:2", "acme:3")] == ["wrong prices", None]
    two.b.client.session("acme:2").resume()
    go_on(two, "b", made)


def test_what_is_left_of_an_older_copy_goes_before_the_next_one(two: TwoCells) -> None:
    """The mover died, and what it had copied has ended in the old cell since."""
    parked_tenant(two)
    redis: Any = two.b.wiring.state.redis
    redis.hset("bq:{acme:1}:moving:t:t-older", "state", "parked")
    two.mover().move(TENANT, "b")
    assert redis.keys("*t-older*") == []
    assert len([step for step in two.steps if step.phase == "copying"]) == 1


def test_a_row_that_changes_while_it_is_copied_is_copied_again(two: TwoCells) -> None:
    two.submit("a", "acme:1", "hello")
    two.a.drain()
    mover, seen = two.mover(), list[str]()

    def watch(step: MoveStep) -> None:
        seen.append(step.phase)
        if step.phase == "deciding" and seen.count("deciding") == 1:
            with two.a.wiring.store.engine.begin() as connection:
                connection.exec_driver_sql("UPDATE turns SET message = 'changed'")

    mover.watch = watch
    assert mover.move(TENANT, "b").phase == "done"
    assert seen.count("copying") == 2
    assert [turn.message for turn in two.a.client.turns(session="acme:1")] == ["changed"]


def test_rows_that_change_faster_than_they_are_copied_undo_the_move(two: TwoCells) -> None:
    two.submit("a", "acme:1", "hello")
    two.a.drain()
    mover, seen = two.mover(), list[str]()

    def watch(step: MoveStep) -> None:
        seen.append(step.phase)
        if step.phase == "deciding":
            with two.a.wiring.store.engine.begin() as connection:
                connection.exec_driver_sql(f"UPDATE turns SET message = '{len(seen)}'")

    mover.watch = watch
    with pytest.raises(MoveFailed, match="do not have the same rows"):
        mover.move(TENANT, "b")
    assert seen.count("copying") == MOST_COPIES
    two.assert_here("a", 1)


def test_a_key_that_is_missing_in_the_copy_is_noticed(two: TwoCells) -> None:
    parked_tenant(two)
    mover = two.mover()
    redis: Any = two.b.wiring.state.redis

    def watch(step: MoveStep) -> None:
        two.steps.append(step)
        if step.phase == "deciding":
            redis.delete("bq:{acme:2}:moving:session")

    mover.watch = watch
    with pytest.raises(MoveFailed, match="changed faster"):
        mover.move(TENANT, "b")
    two.assert_here("a", 1)


def test_a_session_is_not_hidden_while_a_turn_of_it_runs_and_nothing_waits_behind_it(two: TwoCells) -> None:
    """A turn that ends meanwhile lets none of those that wait begin."""
    live = two.submit("a", "acme:1", "hello").turn_id
    waits = two.submit("a", "acme:1", "and then").turn_id
    mover = two.mover(wait_s=60.0)

    def watch(step: MoveStep) -> None:
        if step.waits_for:
            assert step.waits_for == (live,)
            two.a.drain()

    mover.watch = watch
    mover.move(TENANT, "b")
    assert [bell.args[1] for bell, _ in two.a.bells].count(waits) == 0
    assert [result.text for result in two.finish("b", waits)] == ["done and then"]
    assert two.b.wiring.state.sessions.why_paused("acme:1") is None


def test_lanes_that_are_copied_twice_are_there_once_and_in_their_order(two: TwoCells) -> None:
    """The mover died between the two. Whoever waited longest holds the lane."""
    sides = [two.side(name) for name in "ab"]
    redis, keys = two.a.wiring.state.redis, two.a.wiring.state.keys
    holders = [f"acme:{number} t c1-0" for number in (3, 1, 2)]
    for at, holder in enumerate(holders):
        redis.hset(keys.lane_holders, holder, json.dumps(["note", "other"][: 2 - at % 2]))
        redis.rpush(keys.lane("note"), holder)
    redis.rpush(keys.lane("other"), holders[0], holders[2])
    redis.zadd(keys.lane_leases, {holders[0]: 99})
    for _ in range(2):
        sides[0].keys.copy_outside(sides[1].keys, TENANT)
    copied: Any = two.b.wiring.state.redis
    assert copied.lrange(keys.lane("note"), 0, -1) == holders
    assert copied.lrange(keys.lane("other"), 0, -1) == [holders[0], holders[2]]
    assert copied.zrange(keys.lane_leases, 0, -1, withscores=True) == [(holders[0], 99.0)]
    redis.rpush(keys.lane("note"), "globex:1 t c1-0")
    sides[0].keys.remove_outside(TENANT)
    assert redis.lrange(keys.lane("note"), 0, -1) == ["globex:1 t c1-0"]
    assert redis.hlen(keys.lane_holders) == redis.zcard(keys.lane_leases) == 0
    for side in sides:
        side.close()
