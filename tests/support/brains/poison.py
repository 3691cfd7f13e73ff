"""A brain with turns that kill the process that works on them, and with a read and a finalizer step that do so."""

from __future__ import annotations

import json
import os
import signal
import time

from brainq import Brain, Effect, RunContext, ScriptedProvider
from brainq.contracts.callbacks import TurnInfo
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.engine.finalize.steps import StepContext
from brainq.engine.models.scripted import calls, says
from tests.support.brains import diary


def system_prompt(info: TurnInfo) -> str:
    orders = json.loads(info.user_message)
    diary.note("prompt", turn=info.turn_id)
    diary.pass_gate(orders.get("gate", ""))
    if orders.get("kill"):
        kill(info.turn_id)
    return "Do as you are told."


def kill(turn_id: str) -> None:
    diary.note("kill", turn=turn_id)
    os.kill(os.getpid(), signal.SIGKILL)


def obey(request: ModelRequest) -> ModelReply:
    orders = json.loads(next(message.content for message in request.messages if message.role == "user"))
    if "model_s" in orders:  # a model that takes its time; of the poison's the reply kills
        diary.note("asked", turn=request.turn_id)
        time.sleep(orders["model_s"])
    if orders.get("reply_kills"):
        kill(request.turn_id)
    if request.step == 1 and "read" in orders:
        return calls(("look", orders["read"]))
    told = [message.content for message in request.messages if message.role == "tool"]
    return says(" ".join(["well", *told]))


class Own:
    """A finalizer step of the brain. It kills its process as often as it is ordered to."""

    name = "own"

    def is_configured(self, brain: Brain) -> bool:
        return True

    def run(self, context: StepContext) -> None:
        turn = context.claim.turn_id
        orders = json.loads(context.turn.request.user_message).get("own", {})
        diary.note("own", turn=turn, tries=context.claim.tries)
        diary.pass_gate(orders.get("gate", ""))
        if len(diary.notes("kill", turn=turn)) < orders.get("kills", 0):
            diary.note("kill", turn=turn)
            os.kill(os.getpid(), signal.SIGKILL)
        diary.note("own done", turn=turn)


brain = Brain("poison", ScriptedProvider(rules=obey), system_prompt, final_steps=[Own()])


@brain.tool(effect=Effect.READ_ONLY)
def look(context: RunContext, gate: str = "", kill: bool = False) -> str:
    diary.note("look", turn=context.turn_id, attempt=context.attempt)
    diary.pass_gate(gate)
    if kill:
        diary.note("kill", turn=context.turn_id)
        os._exit(13)
    return "looked"
