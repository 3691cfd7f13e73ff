"""Waiting for a turn, with both clients: to its end, or until it waits for somebody."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from brainq import AsyncClient, AsyncTurnHandle, InvalidInput, ResultTimeout, TurnFailed, TurnParked, WaitFor
from brainq.testing import calls, says
from tests.support.people import Pumps, Watched, brain_of
from tests.support.pump import Pump
from tests.support.pumping import pumping


def asking(pumps: Pumps) -> Pump:
    return pumps(brain_of(Watched(calls(("write", {"name": "b"})), says("done")), approval=True))


def run(pump: Pump, talk: Callable[[AsyncClient], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with AsyncClient(pump.settings, pump.wiring.brains) as client:
            await talk(client)

    asyncio.run(whole())


def test_a_turn_is_waited_for_until_it_is_parked_and_then_to_its_end(pumps: Pumps) -> None:
    pump = asking(pumps)
    handle = pump.submit("s1", "Go.")
    with pytest.raises(ResultTimeout, match="has no result after 0 s"):
        handle.wait(timeout_s=0)
    with pumping(pump):
        assert handle.wait(timeout_s=60) == handle.wait("people", 60) == "parked"
        others: tuple[set[WaitFor], ...] = ({"ended"}, {"ended", "client"}, {"outside"})
        for other in others:
            with pytest.raises(ResultTimeout):
                handle.wait(other, timeout_s=0)
        pump.client.approve(handle.approvals()[0].id, by="ann")
        assert handle.wait({"ended"}, 60) == handle.wait({"parked"}, 0) == "ended"
    result = handle.result(timeout_s=0)
    assert result.ok
    assert result.raise_for_ending() is result


def test_the_asynchronous_twin_waits_alike(pumps: Pumps) -> None:
    pump = asking(pumps)

    async def talk(client: AsyncClient) -> None:
        handle = await client.submit("s1", "Go.")
        with pytest.raises(ResultTimeout, match="has no result after 0 s"):
            await handle.wait(timeout_s=0)
        with pumping(pump):
            await go_on(client, handle)

    async def go_on(client: AsyncClient, handle: AsyncTurnHandle) -> None:
        ended = asyncio.create_task(handle.wait({"ended"}, 60))
        assert await handle.wait(timeout_s=60) == await handle.wait("people", 60) == "parked"
        assert not ended.done()
        await client.approve((await handle.approvals())[0].id, by="ann")
        assert await ended == await handle.wait({"parked"}, 0) == "ended"

    run(pump, talk)


def test_run_gives_the_result_or_says_whom_the_turn_waits_for(pumps: Pumps) -> None:
    pump = asking(pumps)
    with pumping(pump):
        with pytest.raises(TurnParked) as waits:
            pump.client.run("s1", "Go.", timeout_s=60, request_key="k-1")
        (approval,) = pump.client.approvals()
        assert (waits.value.awaits, waits.value.approvals) == ("people", (approval.id,))
        assert waits.value.turn_id in str(waits.value)
        pump.client.deny(approval.id, "no", by="ann")
        assert pump.client.run("s1", "Go.", timeout_s=60, request_key="k-1").raise_for_ending().text == "done"

        async def talk(client: AsyncClient) -> None:
            assert (await client.run("s2", "Again.", timeout_s=60)).text == "later"

        run(pump, talk)


def test_the_asynchronous_run_says_it_too(pumps: Pumps) -> None:
    pump = asking(pumps)

    async def talk(client: AsyncClient) -> None:
        with pytest.raises(TurnParked, match="approvals: "):
            await client.run("s1", "Go.", timeout_s=60)

    with pumping(pump):
        run(pump, talk)


def test_a_turn_without_an_answer_is_not_ok(pumps: Pumps) -> None:
    endless: Any = calls(("look", {"name": "a"}))
    pump = pumps(brain_of(Watched(endless)))
    handle = pump.submit("s1", "Go.", limits={"max_steps": 1})
    result = pump.finish(handle)
    assert (result.ending, result.ok) == ("completed", False)
    with pytest.raises(TurnFailed, match=rf"'{handle.turn_id}' ended as completed \(max_steps\)") as failed:
        result.raise_for_ending()
    assert (failed.value.ending, failed.value.stop_reason) == ("completed", "max_steps")


@pytest.mark.parametrize("wrong", [{"nobody"}, set[str](), "queued", ["ended", 3]])
def test_what_is_not_waited_for_is_refused(pump: Pump, wrong: Any) -> None:
    handle = pump.submit("s1", "Go.")
    with pytest.raises(InvalidInput, match=r"until: .* must consist of client, ended, outside, parked, people"):
        handle.wait(wrong)
