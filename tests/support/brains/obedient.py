"""A brain whose model does what the user's message says. Nearly all tests of whole turns use it.

The message is the JSON text made by `script(...)`. Tools and callbacks write a diary and wait at gates, so that a test
can kill a worker exactly there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from brainq import Brain, Callbacks, Deny, Effect, RunContext, ScriptedProvider
from brainq.contracts.callbacks import PostToolUse, PreToolAnswer, PreToolUse, TurnEnd, UsageInfo
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.engine.finalize.steps import StepContext
from brainq.engine.models.scripted import ScriptedFailure, calls, fails, says
from tests.support.brains import diary

Call = tuple[str, dict[str, Any] | str]
FIRST_WORDS = 40


def script(
    *steps: Sequence[Call],
    final: str = "done",
    gate: str = "",
    gate_step: int = 1,
    words_s: float = 0.0,
    words_gate: str = "",
    fail: str = "",
) -> str:
    """Return a user message that makes the model request `steps`, then write `final`.

    final: `$seen` stands for the messages that the model was shown, as JSON.
    gate: the model waits at this gate in step `gate_step`, after it was recorded as thinking.
    words_s: seconds between the words of the final text.
    words_gate: the final text waits at this gate behind its first words.
    fail: the model fails with this kind in its first step.
    """
    return json.dumps(
        {
            "steps": steps,
            "final": final,
            "gate": gate,
            "gate_step": gate_step,
            "words_s": words_s,
            "words_gate": words_gate,
            "fail": fail,
        }
    )


def obey(request: ModelRequest) -> ModelReply | ScriptedFailure:
    orders = json.loads([message.content for message in request.messages if message.content.startswith('{"steps"')][-1])
    diary.note("thinking", turn=request.turn_id, step=request.step, attempt=request.attempt)
    if request.step == orders["gate_step"]:
        diary.pass_gate(orders["gate"])
    if orders["fail"]:
        return fails(orders["fail"], retryable=False, message="the model broke")
    if request.step <= len(orders["steps"]):
        return calls(*((name, arguments) for name, arguments in orders["steps"][request.step - 1]))
    if orders["final"] == "$seen":
        shown = [
            {
                "role": m.role,
                "call": m.call_id,
                "text": m.content,
                "error": m.is_error,
                "asked": [c.id for c in m.calls],
            }
            for m in request.messages
        ]
        return says(json.dumps(shown))
    return says(orders["final"])


class Slowly(ScriptedProvider):
    """A provider that streams word by word, at the pace that the script names."""

    def generate_stream(self, request: ModelRequest) -> Any:
        orders = json.loads(
            [message.content for message in request.messages if message.content.startswith('{"steps"')][-1]
        )
        for number, chunk in enumerate(super().generate_stream(request), start=1):
            yield chunk
            time.sleep(orders["words_s"])
            if number == FIRST_WORDS:
                diary.pass_gate(orders["words_gate"])


class NotesItself:
    """A finalizer step of the brain's own."""

    name = "extra"

    def is_configured(self, brain: Any) -> bool:
        return True

    def run(self, context: StepContext) -> None:
        _called_back("extra", context.claim.turn_id, context.claim.step_key)


def _called_back(name: str, turn_id: str, step_key: str) -> None:
    diary.note(name, turn=turn_id, key=step_key)
    gates = diary.ordered(f"{name}.gate")
    if gates:
        diary.pass_gate(gates)
    many = int(diary.ordered(f"{name}.raise") or 0)
    if len(diary.notes(name, turn=turn_id)) <= many:
        raise RuntimeError(f"{name} was told to fail {diary.ordered('secret')}")
    diary.note(f"{name}.end", turn=turn_id, key=step_key)


def on_usage(info: UsageInfo) -> None:
    _called_back("usage", info.turn_id, info.step_key)


def on_turn_end(info: TurnEnd) -> None:
    _called_back("turn_end", info.turn_id, info.step_key)


def on_pre_tool_use(use: PreToolUse) -> PreToolAnswer:
    return Deny("not today") if use.call.name == "forbidden" else None


def on_post_tool_use(use: PostToolUse) -> None:
    diary.note("post", turn=use.turn_id, call=use.call.id, kind=use.outcome.kind)
    diary.pass_gate(diary.ordered(f"post.gate.{use.turn_id}"))


brain = Brain(
    "obedient",
    Slowly(rules=obey),
    "Do as you are told.",
    callbacks=Callbacks(
        on_usage=on_usage, on_turn_end=on_turn_end, on_pre_tool_use=on_pre_tool_use, on_post_tool_use=on_post_tool_use
    ),
    final_steps=[NotesItself()],
)


def _work(tool: str, name: str, gate: str, sleep_s: float, fail: bool, context: RunContext) -> str:
    facts = {"tool": tool, "name": name, "turn": context.turn_id, "call": context.call_id}
    diary.note("start", key=context.idempotency_key, attempt=context.attempt, **facts)
    try:
        diary.pass_gate(gate)
        if sleep_s:
            time.sleep(sleep_s)
        if fail:
            raise ValueError(f"{name} was told to fail")
        context.cite_local(f"{name}.txt")
    finally:
        diary.note("stop", **facts)
    return f"{tool} {name} ok"


def _tool(tool_name: str, effect: Effect, **options: Any) -> None:
    def work(context: RunContext, name: str, gate: str = "", sleep_s: float = 0.0, fail: bool = False) -> str:
        return _work(tool_name, name, gate, sleep_s, fail, context)

    brain.tool(effect=effect, name=tool_name, **options)(work)


_tool("read", Effect.READ_ONLY)
_tool("write", Effect.LOCAL_WRITE)
_tool("send", Effect.NETWORK)
_tool("destroy", Effect.DESTRUCTIVE)
_tool("forbidden", Effect.LOCAL_WRITE)
_tool("idem", Effect.LOCAL_WRITE, idempotent=True)
_tool("keyed", Effect.LOCAL_WRITE, resources=("note:{name}",))
_tool("patient_write", Effect.LOCAL_WRITE, timeout_s=3.0)
_tool("hasty_write", Effect.LOCAL_WRITE, timeout_s=0.5)
_tool("hasty_read", Effect.READ_ONLY, timeout_s=0.5)
