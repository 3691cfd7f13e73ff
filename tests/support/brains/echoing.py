"""A brain whose model takes as many steps as its turn's id says, records its requests, and answers with these."""

from __future__ import annotations

import random
import time

from brainq import Brain, Effect, ScriptedProvider
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.contracts.turn import Limits
from brainq.engine.models.scripted import calls, says
from tests.support.brains import diary

SLOWEST_S = 0.06


def steps_of(turn_id: str) -> int:
    """Return the steps of a turn: 8 for `t3-8`, and 1 or 2 for a turn that an input became."""
    if turn_id.startswith("in-"):
        return 1 + int(turn_id[-1], 16) % 2
    return int(turn_id.split("-")[1])


def answer(request: ModelRequest) -> ModelReply:
    # The frame of mid-turn input comes after an empty line.
    asked = [m.content.partition("\n\n")[0] for m in request.messages if m.role == "user"]
    diary.note("asked", turn=request.turn_id, step=request.step, attempt=request.attempt, texts=asked)
    diary.pass_gate(diary.ordered(f"gate.{request.turn_id}.{request.step}"))
    is_last = request.step >= steps_of(request.turn_id)
    time.sleep(random.uniform(0.0, SLOWEST_S) + is_last * SLOWEST_S)
    if not is_last:
        return calls(*(("look", {"name": f"{request.step}.{i}"}) for i in range(1 + request.step % 2)))
    return says(f"asked: {', '.join(asked)}")


brain = Brain(
    "echoing", ScriptedProvider(rules=answer), "Help.", limits=Limits(timeout_s=120.0, max_steps=80, max_tool_calls=160)
)


@brain.tool(effect=Effect.READ_ONLY)
def look(name: str) -> str:
    """Look."""
    time.sleep(random.uniform(0.0, SLOWEST_S / 4))
    return f"saw {name}"
