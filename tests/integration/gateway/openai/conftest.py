"""A brain that does what it is told, its gateway, pools beside it, and OpenAI's own client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from openai import OpenAI

from brainq import Brain, Effect, ScriptedProvider
from brainq.app.access import Tokens
from brainq.contracts.message import Reasoning
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.engine.models.scripted import ScriptedFailure, calls, fails, says
from tests.support.gateways import GatewayThread
from tests.support.pump import Pump
from tests.support.pumping import pumping

THOUGHT = "Hm, a tale 🦊. " * 20
STORY = "A tale 🦊 of foxes: " + "naïve 👩‍👩‍👧 words " * 40
OSLO, BERN = ("weather", {"place": "Oslo"}), ("weather", {"place": "Bern"})
PLACE = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}


def obey(request: ModelRequest) -> ModelReply | ScriptedFailure:
    said = [message.content for message in request.messages if message.role == "user"][-1]
    results = [message.content for message in request.messages if message.role == "tool"]
    if request.step == 1:
        match said:
            case "weather":
                return ModelReply(text="Let me see. ", calls=calls(OSLO, BERN).calls)
            case "ghost":
                return calls(OSLO)
            case "mixed":
                return calls(("look", {}), OSLO, ("save", {}), BERN)
            case "look":
                return calls(("look", {}))
            case "refund":
                return calls(("refund", {}))
            case "fail":
                return fails("server", retryable=False, message="the model broke")
            case "too long":
                return fails("too_long", retryable=False, message="the context has 9 tokens")
            case "busy":
                return fails("rate_limited", retryable=False, message="slow down")
            case "think":
                return says(STORY).model_copy(update={"reasoning": (Reasoning(wire="scripted", text=THOUGHT),)})
            case "story":
                return says(STORY)
            case "everything":
                shown = [f"{m.role}: {m.content}" for m in request.messages if m.role != "system"]
                return says(" | ".join(shown))
            case _:
                pass
    if any(message.content == "form" for message in request.messages):  # asked again, it is no longer the last
        return says('{"name": "Bob"}' if results or request.step > 1 else "Sure! It is Bob.")
    if said == "form after a look" and request.step == 1:
        return ModelReply(text="Let me look.", calls=calls(("look", {})).calls)
    if said == "form after a look":
        return says('{"name": "Ann"}')
    if any(message.content == "no form" for message in request.messages):
        return says("I would rather not.")
    if said == "ghost" and request.step == 2:
        return calls(("save", {}))
    if said == "long":
        return says("Cut o", finish="length")
    return says(f"Seen {', '.join(results)}." if results else f"You said {said}.")


def make_brain() -> Brain:
    brain = Brain("shop", ScriptedProvider(rules=obey))

    @brain.tool(effect=Effect.READ_ONLY)
    def look() -> str:  # pyright: ignore[reportUnusedFunction]
        "Look."
        return "pears"

    @brain.tool(effect=Effect.LOCAL_WRITE)
    def save() -> str:  # pyright: ignore[reportUnusedFunction]
        "Save."
        return "saved"

    @brain.tool(effect=Effect.LOCAL_WRITE, approval=True)
    def refund() -> str:  # pyright: ignore[reportUnusedFunction]
        "Pay back."
        return "paid back"

    return brain


@pytest.fixture
def pump(pumps: Callable[..., Pump]) -> Pump:
    return pumps([make_brain(), Brain("echo", ScriptedProvider(rules=lambda request: says("Echo.")))])


@pytest.fixture
def pools(pump: Pump) -> Iterator[None]:
    with pumping(pump):
        yield


@pytest.fixture
def key(pump: Pump) -> str:
    """A token of the tenant `acme:`. Its clients always send one."""
    return Tokens(pump.wiring.store).create("acme", ["acme:"], ["read", "submit", "steer", "configure"]).text


@pytest.fixture
def gateway(gateways: Callable[..., GatewayThread], key: str) -> GatewayThread:
    return gateways(heartbeat_s=0.05)


@pytest.fixture
def clients(key: str, gateway: GatewayThread) -> Iterator[Callable[..., OpenAI]]:
    """Makes clients: `clients(api_key=...)`."""
    made: list[OpenAI] = []

    def make(**given: Any) -> OpenAI:
        options: dict[str, Any] = {"api_key": key, "base_url": f"{gateway.url}/v1", "max_retries": 0}
        client = OpenAI(**(options | given))
        made.append(client)
        return client

    yield make
    for client in made:
        client.close()


@pytest.fixture
def client(clients: Callable[..., OpenAI]) -> OpenAI:
    return clients()
