"""A brain with turns that kill the process that works on them, and a read that does."""

from __future__ import annotations

import json
import os
import signal

from brainq import Brain, Effect, RunContext, ScriptedProvider
from brainq.contracts.callbacks import TurnInfo
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.providers.scripted import calls, says
from tests.support.brains import diary


def system_prompt(info: TurnInfo) -> str:
    orders = json.loads(info.user_message)
    diary.note("prompt", turn=info.turn_id)
    diary.pass_gate(orders.get("gate", ""))
    if orders.get("kill"):
        diary.note("kill", turn=info.turn_id)
        os.kill(os.getpid(), signal.SIGKILL)
    return "Do as you are told."


def obey(request: ModelRequest) -> ModelReply:
    orders = json.loads(next(message.content for message in request.messages if message.role == "user"))
    if request.step == 1 and "read" in orders:
        return calls(("look", orders["read"]))
    told = [message.content for message in request.messages if message.role == "tool"]
    return says(" ".join(["well", *told]))


brain = Brain("poison", ScriptedProvider(rules=obey), system_prompt)


@brain.tool(effect=Effect.READ_ONLY)
def look(context: RunContext, gate: str = "", kill: bool = False) -> str:
    diary.note("look", turn=context.turn_id, attempt=context.attempt)
    diary.pass_gate(gate)
    if kill:
        diary.note("kill", turn=context.turn_id)
        os._exit(13)
    return "looked"
