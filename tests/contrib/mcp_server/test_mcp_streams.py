"""The MCP front as it is over stdin and stdout: one connection, on which a client cancels, and is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from brainq.engine.tools.mcp.calls import IDEMPOTENCY_KEY
from brainq.gateway.edge.authentication import LOCAL_CALLER, local_authenticator
from brainq.gateway.server import make_gateway
from tests.contrib.mcp_server.test_mcp import ages, eventually, new_or_old, parked
from tests.support.mcp_clients import Age, User, over_streams, run, told
from tests.support.pump import Pump
from tests.support.pumping import pumping


def on_streams(pump: Pump, age: Age, use: Callable[..., Any], user: User | None = None) -> Any:
    """What `use` does with a client."""

    async def used() -> Any:
        here = make_gateway(pump.settings, pump.wiring.brains, local_authenticator())
        try:
            async with over_streams(here, LOCAL_CALLER, age=age, user=user) as client:
                return await use(client)
        finally:
            here.long_work.shutdown()
            await here.client.close()

    with pumping(pump):
        return run(used())


@new_or_old
def test_a_client_asks_and_hears_of_its_progress(pump: Pump, age: Age) -> None:
    heard: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    async def use(client: Any) -> None:
        calls = [
            client.call_tool("gate", {"message": "look"}, progress_callback=hear),
            client.call_tool("gate", {"message": "hello"}),
        ]
        one, two = [told(answer) for answer in await asyncio.gather(*calls)]
        assert (one["text"], two["text"]) == ("Read: seen", "Read: hello")
        assert one["session"] != two["session"]

    on_streams(pump, age, use)
    assert heard == sorted(set(heard))
    assert len(heard) > 4


@pytest.mark.parametrize(
    ("age", "meta"),
    [
        ("auto", {IDEMPOTENCY_KEY: "mine"}),
        ("legacy", None),
        pytest.param("auto", None, marks=pytest.mark.full),
        pytest.param("legacy", {IDEMPOTENCY_KEY: "mine"}, marks=pytest.mark.full),
    ],
)
def test_a_cancel_on_the_connection_ends_the_turn_and_its_end_does_not(
    pump: Pump, age: Age, meta: dict[str, Any] | None
) -> None:
    async def cancel(client: Any) -> None:
        call = asyncio.create_task(client.call_tool("gate", {"message": "order"}, meta=meta))
        await parked(pump)
        call.cancel()
        await asyncio.wait({call})
        await eventually(lambda: pump.client.turns()[0].ending == "cancelled", "the turn ends")

    async def leave(client: Any) -> None:
        left.append(asyncio.create_task(client.call_tool("gate", {"message": "order"})))
        await parked(pump)

    left: list[Any] = []
    on_streams(pump, age, cancel)
    on_streams(pump, age, leave)
    assert isinstance(left[0].exception(), Exception)
    assert [turn.state for turn in pump.client.turns()] == ["parked", "cancelled"]


@ages
def test_the_user_of_the_client_decides(pump: Pump, age: Age) -> None:
    async def use(client: Any) -> dict[str, Any]:
        return told(await client.call_tool("gate", {"message": "save"}))

    approves, denies, goes = User("accept"), User("decline"), User("cancel")
    assert on_streams(pump, age, use, approves)["text"] == "Read: saved a"
    assert "refused" in on_streams(pump, age, use, denies)["text"]
    assert on_streams(pump, age, use, goes)["state"] == "parked"
    assert [len(user.asked) for user in (approves, denies, goes)] == [1, 1, 1]


@pytest.mark.full
def test_what_somebody_else_decides_is_no_longer_asked(pump: Pump) -> None:
    class Slow(User):
        async def __call__(self, context: object, params: Any) -> Any:
            (approval,) = pump.client.approvals()
            pump.client.approve(approval.id, by="ann")
            await asyncio.Event().wait()

    async def use(client: Any) -> dict[str, Any]:
        return told(await client.call_tool("gate", {"message": "save"}))

    assert on_streams(pump, "legacy", use, Slow("accept"))["text"] == "Read: saved a"
