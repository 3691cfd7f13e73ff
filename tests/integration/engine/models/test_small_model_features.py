"""A turn with options, a call and images through a real model, which has no eyes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from typing import Any

import pytest

from brainq import Brain, Effect, File, Limits, ModelOptions, StepChoice, StepInfo, WithFiles
from brainq.contracts.status import Ending, StopReason, TraceStatus
from tests.integration.engine.models.asking import WireName, vendor
from tests.integration.engine.models.small_model import SmallModel, why_not
from tests.integration.engine.models.wire_server import Exchange, WireServer
from tests.support.blobs import png
from tests.support.pump import Pump

REASON = why_not()
pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(600),  # a busy machine takes seconds for a step
    pytest.mark.needs(REASON is None, REASON),
]

PHOTO = File(png(1), name="sky.png")
RADAR = File(png(2), name="radar.png")
OPTIONS = ModelOptions(temperature=0, seed=7)
IN_WORDS = "it cannot be shown to this model"


class Relay:
    """Passes requests on to a model, which answers them; `statuses` are those of its answers."""

    def __init__(self, url: str) -> None:
        self._host = url.removeprefix("http://")
        self.statuses: list[int] = []

    def __call__(self, exchange: Exchange) -> None:
        connection = HTTPConnection(self._host, timeout=120)
        body = json.dumps(exchange.server.owner.bodies[-1])
        connection.request("POST", exchange.path, body, {"content-type": "application/json"})
        answer = connection.getresponse()
        self.statuses.append(answer.status)
        if answer.status != 200:
            exchange.send_json(answer.status, json.load(answer))
        else:
            exchange.begin(answer.headers["content-type"])
            while piece := answer.read1():
                exchange.piece(piece)
            exchange.finish()
        connection.close()


@pytest.fixture(scope="module")
def small_model() -> Iterator[SmallModel]:
    model = SmallModel(tools=True)
    yield model
    model.stop()


def one_call(info: StepInfo) -> StepChoice:
    """The first step is made to call a tool, and the next one to answer."""
    choice = "required" if info.step == 1 else "none"
    return StepChoice(options=OPTIONS.model_copy(update={"tool_choice": choice}))


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_a_model_without_eyes_is_told_of_both_images_in_words(
    name: WireName, small_model: SmallModel, wire: WireServer, pumps: Callable[..., Pump]
) -> None:
    wire.otherwise = relay = Relay(small_model.url)
    provider = vendor(name, f"{wire.url}/v1" if name == "openai" else wire.url)
    brain = Brain(
        "small",
        provider,
        "You look at the sky.",
        options=OPTIONS,
        for_step=one_call,
        limits=Limits(timeout_s=300, max_output_tokens=60, max_context_tokens=6_000),
    )

    @brain.tool(effect=Effect.READ_ONLY)
    def radar() -> WithFiles:  # pyright: ignore[reportUnusedFunction]
        """The radar's picture."""
        return WithFiles("drawn", [RADAR])

    pump = pumps(brain, lease_s=10.0)
    handle = pump.submit("s1", "Does it rain here?", attachments=[PHOTO])
    result = pump.finish(handle, timeout_s=300)
    provider.close()

    assert (result.ending, result.steps) == (Ending.COMPLETED, 2), result.error
    assert result.stop_reason in (StopReason.ANSWERED, StopReason.LENGTH)  # how long it talks is its own affair
    snapshot = handle.snapshot()
    assert snapshot is not None
    assert {(entry.tool, entry.status) for entry in snapshot.trace} == {("radar", TraceStatus.COMPLETED)}
    assert relay.statuses == [500, 200, 200], "it refused an image, once"
    shown, told, after = (said_in(body) for body in wire.bodies)
    assert "base64" in shown
    assert "base64" not in told + after
    assert (told.count(IN_WORDS), after.count(IN_WORDS)) == (1, 2)
    assert all(file.attachment.label in after for file in (PHOTO, RADAR))
    sent = [(body["temperature"], body.get("seed")) for body in wire.bodies]
    assert sent == [(0, 7 if name == "openai" else None)] * 3, "Anthropic's API has no seed"


def said_in(body: dict[str, Any]) -> str:
    return json.dumps(body["messages"])
