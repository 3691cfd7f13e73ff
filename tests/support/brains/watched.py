"""A brain for tests that watch turns.

It follows the scripts of `people`, streams at their pace, fails if they order it, and has a tool that returns any text.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from brainq import Brain, Effect, File, ScriptedProvider, WithFiles
from brainq.contracts.message import Reasoning
from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest
from brainq.engine.models.scripted import ScriptedFailure, calls, fails, says
from brainq.engine.turn.text_stream import DELTA_EVERY_S
from tests.support.blobs import png
from tests.support.brains import diary, obedient, people

THOUGHT = "A picture says more."
PAINTED = File(png(9), name="painted.png")


def orders(request: ModelRequest) -> dict[str, Any]:
    """Return the script of this turn, or an empty one if its message is not a script."""
    for message in request.messages:
        if message.turn == request.turn_id and message.content.startswith('{"steps"'):
            return json.loads(message.content)
    return {}


def obey(request: ModelRequest) -> ModelReply | ScriptedFailure:
    kind = orders(request).get("fail")
    return fails(kind, retryable=False, message="the model broke") if kind else people.obey(request)


class Slowly(ScriptedProvider):
    def generate_stream(self, request: ModelRequest) -> Iterator[ModelChunk]:
        for chunk in super().generate_stream(request):
            yield chunk
            time.sleep(orders(request).get("words_s", 0.0))


brain = Brain(
    "watched",
    Slowly(rules=obey),
    "Do as you are told.",
    tools=[people.brain.tools[name] for name in ("read", "write", "sign", "send_off", "watch_read", "change")],
    final_steps=[obedient.NotesItself()],
)


@brain.tool(effect=Effect.READ_ONLY)
def echo(said: str) -> str:
    """Say it again."""
    return said


@brain.tool(effect=Effect.READ_ONLY)
def refuse(said: str) -> str:
    """Fail with it."""
    raise ValueError(said)


class Thinks(ScriptedProvider):
    """A provider that sends reasoning before it calls a tool, and continues once the gate that the message names is
    open."""

    def generate_stream(self, request: ModelRequest) -> Iterator[ModelChunk]:
        if request.step > 1:
            yield from super().generate_stream(request)
            return
        for at in range(0, len(THOUGHT), 5):
            time.sleep(1.5 * DELTA_EVERY_S)  # pieces that come sooner wait for the next one
            yield ModelChunk(reasoning=THOUGHT[at : at + 5])
        diary.pass_gate(next(one.content for one in request.messages if one.turn == request.turn_id))
        for chunk in super().generate_stream(request):
            if chunk.reply is not None:
                thought = Reasoning(wire="scripted", text=THOUGHT)
                chunk = ModelChunk(reply=chunk.reply.model_copy(update={"reasoning": (thought,)}))
            yield chunk


painter = Brain(
    "painter", Thinks(rules=lambda request: calls(("paint", {})) if request.step == 1 else says("Painted."))
)


@painter.tool(effect=Effect.READ_ONLY)
def paint() -> WithFiles:
    """A picture."""
    return WithFiles("painted", [PAINTED])


parrot = Brain("parrot", ScriptedProvider(rules=lambda request: says("the parrot says so")), "Say so.")
brains = (brain, parrot, painter)
