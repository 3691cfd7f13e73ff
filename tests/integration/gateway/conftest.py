"""Gateways of the verbs' brain, on the pump's Redis and SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from brainq import Approvals, Brain, Effect, Pending, RunContext, ScriptedProvider
from brainq.app.access import Tokens, Verb
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.engine.models.scripted import calls, says
from tests.support.gateways import GatewayThread
from tests.support.pump import Pump

given: list[str] = []
"""The tokens that `order` gave away."""
TOOLS = ("save", "order", "named", "look", "ring")
"""What the user says to have one called; `ring` is for the client to bring along."""


def obey(request: ModelRequest) -> ModelReply:
    said = request.messages[-1].content
    if request.step == 1 and said in TOOLS:
        return calls((said, {}))
    return says(f"Read: {said}")


def make_brain() -> Brain:
    brain = Brain("gate", ScriptedProvider(rules=obey), approvals=Approvals(effects=(Effect.LOCAL_WRITE,)))

    @brain.tool(effect=Effect.LOCAL_WRITE)
    def save(name: str = "a") -> str:  # pyright: ignore[reportUnusedFunction]
        "Save."
        return f"saved {name}"

    @brain.tool(effect=Effect.READ_ONLY)
    def look() -> str:  # pyright: ignore[reportUnusedFunction]
        "Look."
        return "seen"

    @brain.tool(effect=Effect.NETWORK)
    def order(context: RunContext) -> Pending:  # pyright: ignore[reportUnusedFunction]
        "Order."
        given.append(context.outside_token())
        return Pending(context.outside_token(), timeout_s=60)

    @brain.tool(effect=Effect.NETWORK)
    def named(context: RunContext) -> Pending:  # pyright: ignore[reportUnusedFunction]
        "Order, by a name of our own."
        return Pending(f"job/of {context.session_id}", timeout_s=60)

    return brain


@pytest.fixture
def pump(pumps: Callable[..., Pump]) -> Pump:
    return pumps(make_brain())


@pytest.fixture
def gateways(pump: Pump) -> Iterator[Callable[..., GatewayThread]]:
    """Makes gateways: `gateways(wait_s=2, ...)`, the settings without their `http_`."""
    with ExitStack() as stack:

        def make(**given: Any) -> GatewayThread:
            return stack.enter_context(GatewayThread(pump.settings, pump.wiring.brains, **given))

        yield make


@pytest.fixture
def gateway(gateways: Callable[..., GatewayThread]) -> GatewayThread:
    return gateways()


@pytest.fixture
def whole_gateway(gateways: Callable[..., GatewayThread], pump: Pump, monkeypatch: pytest.MonkeyPatch) -> GatewayThread:
    """With every wire. Everybody brings a token, and who was known stays so: no question to SQL."""
    monkeypatch.setattr(Tokens.__init__, "__defaults__", (600.0, 0.0))
    Tokens(pump.wiring.store).create("anybody", ["*"], tuple(Verb))
    return gateways(requests_s=10_000, a2a="http://agents.example")
