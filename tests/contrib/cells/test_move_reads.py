"""A tenant's mover dies when the old cell already sends callers to the new one, which has not got everything yet. No
accepted turn is told not to exist then, by whatever it is asked for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from brainq.client.async_client import AsyncClient
from brainq.client.async_handle import AsyncTurnHandle
from brainq.client.client import Client
from brainq.client.handle import TurnHandle
from brainq.contracts.answers import Answers
from brainq.contracts.cell import MoveStep, Placement
from brainq.contracts.event import TurnEvent
from brainq.contrib.cells import routing
from brainq.contrib.cells.asking import ask_each
from brainq.contrib.cells.directory import FRESH_S
from brainq.contrib.cells.move import MoveRun
from brainq.engine.brain.brain import Brain
from brainq.errors import ResultTimeout, ScheduleNotFound, TenantMoving, TurnNotFound
from brainq.runtime.settings.deployment import Settings, load_settings
from tests.contrib.cells.two import TENANT, TwoCells, parked_tenant
from tests.support.gateways import GatewayThread
from tests.support.pump import QUICK

BRAIN = Brain("cells", "offline:rules")
LATE = "t-acme-1-late"  # accepted in the old cell after the copy
NEW = "t-acme-1-new"  # accepted in the new cell, which is not open yet


class Died(BaseException):
    """The mover is gone."""


@pytest.fixture
def settings(two: TwoCells) -> Settings:
    return load_settings(**{**QUICK, "cells": two.cells})


@pytest.fixture
def front(settings: Settings) -> Iterator[Client]:
    with closing(Client(settings, BRAIN)) as client:
        yield client


def die_while_flipping(two: TwoCells, monkeypatch: pytest.MonkeyPatch, place: str = "_bring_changes") -> dict[str, str]:
    """The mover dies in place of this act. Turn LATE was accepted just before."""
    made, mover = parked_tenant(two), two.mover()

    def watch(step: MoveStep) -> None:
        if step.phase == "flipping":
            two.submit("a", "acme:1", "late")

    def die(_: object) -> None:
        raise Died

    mover.watch = watch
    with monkeypatch.context() as patched:
        patched.setattr(MoveRun, place, die)
        with pytest.raises(Died):
            mover.move(TENANT, "b")
    return made


def learn(front: Client) -> None:
    """The front hears from the old cell of the new one."""
    assert front.submit("acme:1", "new", turn_id=NEW).created


def all_events(handle: TurnHandle, timeout_s: float) -> list[TurnEvent]:
    return list(handle.events(timeout_s=timeout_s))


def reads(front: Client) -> dict[str, Callable[[], object]]:
    """Every way of asking for turn LATE, or for a list that has it."""
    handle, session = front.handle(LATE), front.session("acme:1")
    return {
        "request": handle.request,
        "snapshot": handle.snapshot,
        "explain": handle.explain,
        "timeline": handle.timeline,
        "transcript": handle.transcript,
        "calls": handle.calls,
        "approvals of a turn": handle.approvals,
        "receipt": lambda: handle.receipt("m1"),
        "events so far": handle.events_so_far,
        "cancel": handle.cancel,
        "history": session.history,
        "waiting": session.waiting,
        "turns of a session": lambda: front.turns(session="acme:1"),
        "turns of a prefix": lambda: front.turns(session_prefixes=["acme:"]),
        "sessions": lambda: front.sessions(session_prefixes=["acme:"]),
        "approvals": lambda: front.approvals(session_prefixes=["acme:"]),
        "an approval": lambda: front.approval("t-acme-2-write-x-c1-0"),
        "a schedule": lambda: front.find_schedule("acme:daily"),
        "no schedule": lambda: front.remove_schedule("acme:none"),
    }


def test_who_has_heard_of_the_new_cell_is_told_to_come_again(
    two: TwoCells, front: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    die_while_flipping(two, monkeypatch)
    learn(front)
    for what, read in reads(front).items():
        with pytest.raises(TenantMoving):
            pytest.fail(f"{what}: {read()}")
    assert LATE in {turn.turn_id for turn in front.turns()}
    assert front.find(LATE).session_id == "acme:1"
    for turn_id in (LATE, NEW):
        handle = front.handle(turn_id)
        for wait in (handle.result, partial(handle.wait, "ended"), partial(all_events, handle)):
            with pytest.raises(ResultTimeout):
                wait(0.01)
    two.mover().move(TENANT, "b")
    two.finish("b", LATE, NEW)
    for turn_id in (LATE, NEW):
        assert front.handle(turn_id).result(5).text == f"done {turn_id.rpartition('-')[2]}"
    assert {LATE, NEW} <= {turn.turn_id for turn in front.turns(session="acme:1")}
    assert front.find_schedule("acme:daily").name == "acme:daily"
    with pytest.raises(TurnNotFound):
        front.handle("t-none")


def test_who_still_believes_in_the_old_cell_finds_there_what_it_accepted(
    two: TwoCells, front: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    front.turns(session="acme:1")
    die_while_flipping(two, monkeypatch)
    assert front.handle(LATE).request().user_message == "late"
    assert LATE in {turn.turn_id for turn in front.turns(session="acme:1")}
    two.submit("b", "acme:1", "new")
    for read in (front.handle(NEW).request, lambda: front.find_schedule("acme:none")):
        with pytest.raises(TenantMoving):
            read()
    two.mover().move(TENANT, "b")
    assert front.handle(NEW).request().user_message == "new"
    with pytest.raises(ScheduleNotFound):
        front.find_schedule("acme:none")


def test_a_wait_that_began_while_the_tenant_moved_ends_with_the_result(
    two: TwoCells, front: Client, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has submitted is not told to submit again."""
    die_while_flipping(two, monkeypatch)

    async def first_event(handle: AsyncTurnHandle) -> int:
        return (await anext(handle.events(timeout_s=30))).seq

    async def follow() -> list[str | None]:
        async with AsyncClient(settings, BRAIN) as client:
            new = await client.submit("acme:1", "new", turn_id=NEW)
            late = await client.handle(LATE)
            for handle in (new, late):
                with pytest.raises(ResultTimeout):
                    await handle.result(0.01)
            waits = [asyncio.create_task(handle.result(30)) for handle in (new, late)]
            events = asyncio.create_task(first_event(late))
            await asyncio.sleep(0)
            await asyncio.to_thread(two.mover().move, TENANT, "b")
            await asyncio.to_thread(two.finish, "b", LATE, NEW)
            assert await events == 1
            return [(await wait).text for wait in waits]

    assert asyncio.run(follow()) == ["done new", "done late"]


def test_a_gateway_answers_503_and_says_when_to_ask_again(
    two: TwoCells, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    die_while_flipping(two, monkeypatch)
    with GatewayThread(settings, BRAIN) as gateway:
        sent = gateway.http.post("/v1/turns", json={"session_id": "acme:1", "user_message": "new"})
        assert sent.status_code == 202
        new = sent.json()["turn_id"]
        for path in (f"turns/{LATE}", f"turns/{new}", "turns?session=acme:1", f"turns/{LATE}/calls"):
            reply = gateway.http.get(f"/v1/{path}")
            assert (reply.status_code, int(reply.headers["Retry-After"]) > 0) == (503, True), path
            assert reply.json()["type"].endswith("tenant-moving")
        two.mover().move(TENANT, "b")
        assert gateway.http.get(f"/v1/turns/{LATE}").status_code == 200
        assert gateway.http.get("/v1/turns/t-none").status_code == 404


def test_a_turn_that_goes_over_between_two_looks_is_found(
    two: TwoCells, front: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new cell is asked before it has the turn, and the old one when it has it no more."""
    two.submit("a", "acme:1", "late")
    looks: list[int] = []

    def look(asked: Any, question: Any) -> Answers[Any]:
        looks.append(len(asked))
        return Answers(tuple((name, None) for name, _ in asked)) if len(looks) == 1 else ask_each(asked, question)

    monkeypatch.setattr(routing, "ask_each", look)
    assert front.handle(LATE).session_id == "acme:1"
    assert looks == [2, 2]


def test_the_old_cell_keeps_its_rows_until_fronts_have_looked_again(two: TwoCells, front: Client) -> None:
    """A front that only reads believes in the old cell for a while; a list of that cell lacks nothing meanwhile."""
    two.finish("a", two.submit("a", "acme:1", "late").turn_id)
    assert len(front.turns(session="acme:1")) == 1
    mover, listed = two.mover(), list[int]()

    def linger(_: float) -> None:
        assert two.placed() == Placement("b", 2)
        listed.append(len(front.turns(session="acme:1")))

    mover.linger_s = FRESH_S
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("brainq.contrib.cells.move.time", SimpleNamespace(monotonic=time.monotonic, sleep=linger))
        mover.move(TENANT, "b")
    assert listed == [1]
    two.assert_gone_from("a", "b", 2)
