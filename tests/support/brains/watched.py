"""A brain for tests of what watches turns: it follows the scripts of `people`, streams at the pace that they name,
fails where they say so, and lets a tool say anything."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from brainq import Brain, Effect, ScriptedProvider
from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest
from brainq.providers.scripted import ScriptedFailure, fails, says
from tests.support.brains import obedient, people


def orders(request: ModelRequest) -> dict[str, Any]:
    """The script of this turn; nothing where its message is none."""
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
    tools=[
        people.brain.tools[name] for name in ("read", "write", "sign", "send_off", "watch_read", "change")
    ],
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


parrot = Brain("parrot", ScriptedProvider(rules=lambda request: says("the parrot says so")), "Say so.")
brains = (brain, parrot)
