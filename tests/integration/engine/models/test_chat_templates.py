"""Whole turns against servers that hold every request to the rules of a model's chat template."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from brainq import Brain, Effect, Limits, Memory
from brainq.adapters.models.openai.provider import OpenAIProvider
from brainq.contracts.status import Ending
from tests.integration.engine.models.wire_server import Exchange, WireServer
from tests.support.chat_templates import Template, TemplateError, gemma, mistral, qwen
from tests.support.pump import Pump
from tests.support.wait import wait_until

Reply = str | list[tuple[str, str]]
LONG = "The shelf holds dust, two nails and a note that says: look further. " * 40


class Served:
    """A model behind one template. Steps are answered from `replies`, what is asked beside them with a few words."""

    def __init__(self, server: WireServer, template: Template) -> None:
        self.server = server
        self.template = template
        self.refused: list[str] = []
        self.replies: list[Any] = []  # a Reply, or a function that makes one
        server.otherwise = self.answer

    def answer(self, exchange: Exchange) -> None:
        body = self.server.bodies[-1]
        try:
            self.template(body["messages"])
        except TemplateError as error:
            self.refused.append(str(error))
            exchange.send_json(400, {"error": {"message": str(error), "type": "BadRequestError"}})
            return
        if not body.get("stream"):
            said = {"role": "assistant", "content": "Look at the other shelf next time."}
            exchange.send_json(200, {"choices": [{"message": said, "finish_reason": "stop"}]})
            return
        reply: Any = self.replies.pop(0)
        reply = reply() if callable(reply) else reply
        delta: dict[str, Any] = {"content": reply}
        if not isinstance(reply, str):
            # No ids, no indexes, no usage: a server may leave all of them out.
            delta = {"tool_calls": [{"function": {"name": n, "arguments": a}} for n, a in reply]}
        exchange.begin()
        exchange.event({"choices": [{"delta": delta}]})
        exchange.event({"choices": [{"delta": {}, "finish_reason": "stop"}]})
        exchange.event("[DONE]")
        exchange.finish()

    @property
    def requests(self) -> list[list[dict[str, Any]]]:
        """The messages of the steps' requests."""
        return [body["messages"] for body in self.server.bodies if "tools" in body]


@pytest.fixture
def server() -> Iterator[WireServer]:
    with WireServer() as made:
        yield made


def brain_of(provider: OpenAIProvider, late: threading.Event) -> Brain:
    brain = Brain(
        "strict",
        provider,
        "Be good.",
        thinking="high",
        memory=Memory(),
        limits=Limits(max_steps=12, max_context_tokens=4_000, timeout_s=60),
    )

    @brain.tool(effect=Effect.READ_ONLY)
    def look(shelf: int) -> str:  # pyright: ignore[reportUnusedFunction]
        """Look at a shelf; there are nine."""
        if shelf > 9:
            raise LookupError("no such shelf")
        return f"Shelf {shelf}. {LONG}"

    @brain.tool(effect=Effect.READ_ONLY)
    def get_context_pack(query: str) -> dict[str, str]:  # pyright: ignore[reportUnusedFunction]
        """What is known."""
        return {"asked": query}

    @brain.tool(effect=Effect.LOCAL_WRITE, timeout_s=0.1)
    def put(thing: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Put a thing on a shelf."""
        late.wait(30)
        return f"put {thing}"

    return brain


@pytest.mark.parametrize(
    ("template", "roles", "refusals"),
    [(qwen, "all", 0), (mistral, "alternating", 0), (gemma, "no_system", 0), (mistral, "all", 1), (gemma, "all", 1)],
    ids=["qwen", "mistral", "gemma", "mistral, learned", "gemma, learned"],
)
def test_every_request_is_one_that_the_template_takes(
    pumps: Callable[..., Pump], server: WireServer, template: Template, roles: str, refusals: int
) -> None:
    provider = OpenAIProvider(base_url=f"{server.url}/v1", api_key="k", roles=roles)
    provider.warm_up()
    late = threading.Event()
    model = Served(server, template)
    pump = pumps(brain_of(provider, late))

    # Two reads, a failed one (and a reflection), a write that is given up; then steered before it answers.
    first = pump.submit("s1", "Where is the lamp?", skill_context="Look twice.")

    def steered() -> Reply:
        first.steer("And the oil?", client_message_id="m1")
        first.steer("Be quick.", client_message_id="m2")
        return [("look", '{"shelf": 3}')]

    model.replies = [
        [("look", '{"shelf": 1}'), ("look", '{"shelf": 2}')],
        [("look", '{"shelf": 10}')],
        [("put", '{"thing": "lamp"}')],
        steered,
        "On shelf 3.",
    ]
    assert pump.finish(first).text == "On shelf 3."
    late.set()
    notices = pump.wiring.state.keys.of_session("s1", "notices")
    wait_until(lambda: pump.wiring.state.redis.exists(notices), "the late write left a notice")

    # Cancelled while its calls stand open: the next turn begins behind results that nobody answered.
    second = pump.submit("s1", "And the wick?")
    model.replies = [lambda: [("look", '{"shelf": 4}')]]
    bell = pump.take()
    while bell is not None and model.replies:
        pump.answer(bell)
        bell = pump.take()
    second.cancel()
    assert pump.finish(second).ending is Ending.CANCELLED

    third = pump.submit("s1", "Then tell me about the oil.")
    model.replies = [[("look", f'{{"shelf": {shelf}}}')] for shelf in (5, 6, 7)] + ["It is gone."]
    assert pump.finish(third).text == "It is gone."
    assert pump.finish(pump.client.session("s1").compact()).ending is Ending.COMPLETED

    fourth = pump.submit("s1", "Thank you.")
    model.replies = ["You are welcome."]
    result = pump.finish(fourth)
    assert result.text == "You are welcome."
    assert result.input_tokens > 0
    assert "the service did not count the tokens of 1 reply, or not rightly; they are estimated" in result.warnings
    kept = pump.wiring.store.spends.of_turn(first.turn_id)
    assert {spend.kind for spend in kept} == {"step", "reflection", "memory"}
    assert all(spend.estimated for spend in kept), "also in SQL"

    assert len(model.refused) == refusals, model.refused
    said = [str(messages) for messages in model.requests]
    for sight in ("And the oil?", "Look twice.", "review of your steps", "reported as not finished", "cancelled"):
        assert any(sight in text for text in said), sight
    assert "summary" in said[-1]
    provider.close()
