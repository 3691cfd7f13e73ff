"""A brain whose model repeats what it is shown, byte for byte, and whose tools make pictures."""

from __future__ import annotations

import hashlib

from brainq import Brain, Effect, File, ScriptedProvider, WithFiles
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.engine.models.scripted import calls, says
from tests.support.blobs import png

APP = "tests.support.brains.seeing:brain"


def look(request: ModelRequest) -> ModelReply:
    if request.step == 1:
        return calls(("draw", {}), ("paint", {}))
    shown = [one for message in request.messages for one in message.attachments]
    return says(" ".join(f"{one.name}:{_seen(request, one.sha256)}" for one in shown))


def _seen(request: ModelRequest, sha256: str) -> str:
    data = request.blobs.get(sha256)
    return "gone" if data is None else hashlib.sha256(data).hexdigest()[:8]


brain = Brain("seeing", ScriptedProvider(rules=look))


@brain.tool(effect=Effect.READ_ONLY, isolation="process")
def draw() -> File:
    return File(png(7), name="chart.png")


@brain.tool(effect=Effect.LOCAL_WRITE)
def paint() -> WithFiles:
    return WithFiles("painted", [File(png(8), name="wall.png")])
