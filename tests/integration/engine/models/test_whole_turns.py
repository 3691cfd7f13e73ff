"""Turns with reasoning, a tool that returns an image, and a user's image, over each vendor's own SDK, streamed."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest

from brainq import Brain, Effect, File, ModelOptions, WithFiles
from brainq.adapters.models.anthropic.provider import AnthropicProvider
from brainq.adapters.models.openai.provider import OpenAIProvider, OpenAIResponsesProvider
from brainq.adapters.models.vendor_provider import VendorProvider
from brainq.client.handle import TurnHandle
from brainq.contracts.event import EventKind
from brainq.contracts.status import Ending
from tests.integration.engine.models.responses_service import ResponsesService
from tests.integration.engine.models.thinking_services import BACK, CONTENT, Claude, DeepSeek, beginning_read_again
from tests.integration.engine.models.wire_server import WireServer
from tests.support.blobs import png
from tests.support.pump import Pump
from tests.unit.engine.models.test_reasoning import THOUGHT
from tests.unit.engine.models.test_responses_wire import CALL, said

Pumps = Callable[..., Pump]
PHOTO = File(png(1), name="sky.png")
RADAR = File(png(2), name="radar.png")
ASKED = "Does it rain here?"
DRAWN = "clouds of 0 km"
ANSWER = "It rains."
OPTIONS = ModelOptions(reasoning_effort="high")


def in_base64(file: File) -> str:
    return base64.b64encode(file.data).decode()


def in_url(file: File) -> str:
    return f"data:image/png;base64,{in_base64(file)}"


def run_turn(provider: VendorProvider, pumps: Pumps, thought: str) -> None:
    """A turn of one call and an answer. What its readers are told of it is checked."""
    brain = Brain("forecast", provider, "You look at the sky.", options=OPTIONS)

    @brain.tool(effect=Effect.READ_ONLY)
    def weather(n: int) -> WithFiles:  # pyright: ignore[reportUnusedFunction]
        """The radar's picture."""
        return WithFiles(f"clouds of {n} km", [RADAR])

    provider.warm_up()
    try:
        pump = pumps(brain)
        handle = pump.submit("s1", ASKED, attachments=[PHOTO])
        result = pump.finish(handle)
    finally:
        provider.close()
    assert (result.ending, result.text, result.steps) == (Ending.COMPLETED, ANSWER, 2), result.error
    check_records(handle, thought)


def check_records(handle: TurnHandle, thought: str) -> None:
    """Transcript and events of the turn."""
    user, called, drawn, answer = handle.transcript()
    assert (user.content, user.attachments) == (ASKED, (PHOTO.attachment,))
    assert "".join(one.text for one in called.reasoning) == thought
    assert [(call.name, call.arguments) for call in called.calls] == [("weather", {"n": 0})]
    assert (drawn.content, drawn.attachments) == (DRAWN, (RADAR.attachment,))
    assert answer.content == ANSWER
    assert [handle.file(file.attachment.sha256) for file in (PHOTO, RADAR)] == [PHOTO, RADAR]

    events = list(handle.events())
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert events[-1].is_final
    told = [event for event in events if event.kind is EventKind.REASONING_DELTA and event.data["step"] == 1]
    assert "".join(str(event.data["text"]) for event in told) == thought
    called_at = next(event.seq for event in events if event.kind is EventKind.CALL_DISPATCHED)
    assert all(event.seq < called_at for event in told)


def test_claude_is_sent_its_thinking_and_both_images(wire: WireServer, pumps: Pumps) -> None:
    wire.otherwise = claude = Claude(wire)
    run_turn(AnthropicProvider(base_url=wire.url, api_key="k"), pumps, THOUGHT["thinking"])
    first, second = wire.bodies
    assert claude.wrong == []
    assert (first["stream"], first["thinking"]) == (True, {"type": "adaptive"})

    begun = beginning_read_again(first, second)
    assert begun[-2:] == [image_block(PHOTO), {"type": "text", "text": ASKED}]
    _, thought, results = second["messages"]
    kinds = [block["type"] for block in thought["content"]]
    assert thought["content"][0] == THOUGHT, "with its signature"
    assert kinds == [block["type"] for block in CONTENT], "thinking stands before the call"
    (result,) = results["content"]
    assert (result["type"], result["tool_use_id"]) == ("tool_result", thought["content"][-1]["id"])
    assert result["content"] == [{"type": "text", "text": DRAWN}, image_block(RADAR)]


def image_block(file: File) -> dict[str, Any]:
    source = {"type": "base64", "media_type": "image/png", "data": in_base64(file)}
    return {"type": "image", "source": source}


@pytest.mark.full
def test_chat_completions_are_sent_the_reasoning_and_both_images(wire: WireServer, pumps: Pumps) -> None:
    wire.otherwise = DeepSeek(wire)
    run_turn(OpenAIProvider(base_url=f"{wire.url}/v1", api_key="k"), pumps, BACK["reasoning_content"])
    first, second = wire.bodies
    assert (first["stream"], first["reasoning_effort"]) == (True, "high")
    assert second["messages"][: len(first["messages"])] == first["messages"]

    _, asked, thought, drawn, shown = second["messages"]
    assert asked["content"] == [{"type": "text", "text": ASKED}, image_url(PHOTO)]
    assert thought["reasoning_content"] == BACK["reasoning_content"]
    (call,) = thought["tool_calls"]
    assert (drawn["role"], drawn["tool_call_id"]) == ("tool", call["id"])
    assert drawn["content"].startswith(DRAWN)
    assert shown["role"] == "user", "a tool's message takes no images"
    words, image = shown["content"]
    assert "returned by the tool weather" in words["text"]
    assert image == image_url(RADAR)


def image_url(file: File) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": in_url(file)}}


@pytest.mark.full
def test_the_responses_api_is_sent_the_reasoning_and_both_images(wire: WireServer, pumps: Pumps) -> None:
    wire.otherwise = service = ResponsesService([CALL | {"arguments": '{"n": 0}'}], [said(ANSWER)])
    run_turn(OpenAIResponsesProvider(base_url=f"{wire.url}/v1", api_key="k"), pumps, "Thought 1.")
    first, second = wire.bodies
    assert (service.refused, service.sent_back) == ([], ["rs_1"])
    assert (first["stream"], first["reasoning"]["effort"]) == (True, "high")
    assert second["input"][: len(first["input"])] == first["input"]

    asked, thought, call, drawn = second["input"]
    assert asked["content"] == [{"type": "input_text", "text": ASKED}, input_image(PHOTO)]
    assert thought["encrypted_content"] == "sealed-1"
    assert (drawn["type"], drawn["call_id"]) == ("function_call_output", call["call_id"])
    assert drawn["output"] == [{"type": "input_text", "text": DRAWN}, input_image(RADAR)]


def input_image(file: File) -> dict[str, Any]:
    return {"type": "input_image", "image_url": in_url(file), "detail": "auto"}
