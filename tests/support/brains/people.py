"""A brain whose turns wait for people and outside results, and whose workers stop at places that a test names.

The message is the JSON text made by `obedient.script(...)`. A turn with any other message answers `heard: ...`.

    order("commit.after.TURN", gate)   the next worker at this place of the turn records it, and waits there
"""

from __future__ import annotations

import functools
import json
import os
import time
from collections.abc import Callable
from typing import Any

from brainq import Brain, Children, ChildTurn, Effect, Pending, RunContext, ScriptedProvider
from brainq.adapters.redis.calls import RedisCalls
from brainq.adapters.redis.turns import RedisTurns
from brainq.adapters.sql.repositories.approvals import Approvals as ApprovalRows
from brainq.adapters.sql.repositories.calls import Calls as CallRows
from brainq.contracts.message import Message
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.contracts.tool import Isolation
from brainq.engine.models.scripted import calls, says
from brainq.engine.people.bounced_inputs import BouncedInputs
from brainq.engine.people.children import ChildDesk
from brainq.engine.tools.results import Partial
from tests.support.brains import diary, obedient


def obey(request: ModelRequest) -> ModelReply:
    """Follow the script. The diary has the inputs that the model was shown."""
    own = [message for message in request.messages if message.turn == request.turn_id]
    heard = [message for message in own if message.extra and "input" in message.extra]
    question = next(message for message in own if message.role == "user" and message not in heard)
    orders: dict[str, Any] = {"steps": [], "final": f"heard: {question.content}", "gate": "", "gate_step": 0}
    if question.content.startswith('{"steps"'):
        orders = json.loads(question.content)
    diary.note(
        "thinking",
        turn=request.turn_id,
        step=request.step,
        attempt=request.attempt,
        inputs=[message.extra["input"] for message in heard if message.extra],
        others=[message.content for message in request.messages if message.turn != request.turn_id],
    )
    if request.step == orders["gate_step"]:
        diary.pass_gate(orders["gate"])
    if request.step <= len(orders["steps"]):
        return calls(*((name, arguments) for name, arguments in orders["steps"][request.step - 1]))
    return says(json.dumps([_shown(m) for m in own]) if orders["final"] == "$seen" else orders["final"])


def _shown(message: Message) -> dict[str, Any]:
    return {"role": message.role, "text": message.content, "call": message.call_id, "error": message.is_error}


brain = Brain(
    "people",
    ScriptedProvider(rules=obey, auxiliary=lambda request: says("what was said before")),
    "Do as you are told.",
    tools=[obedient.brain.tools[name] for name in ("read", "write", "idem", "keyed")],
    children=Children(max_depth=2, max_turns=2),
)


def _began(tool: str, name: str, context: RunContext) -> None:
    diary.note("start", tool=tool, name=name, turn=context.turn_id, call=context.call_id, attempt=context.attempt)


def _signed(tool: str, effect: Effect, approval: bool | str) -> None:
    def work(context: RunContext, name: str, gate: str = "") -> str:
        _began(tool, name, context)
        diary.pass_gate(gate)
        diary.note("stop", tool=tool, name=name, turn=context.turn_id)
        return f"{tool} {name} ok"

    brain.tool(effect=effect, name=tool, approval=approval)(work)


def _pending(tool: str, effect: Effect) -> None:
    def work(context: RunContext, name: str, own: str = "", timeout_s: float = 60.0) -> Pending:
        token = own or context.outside_token()
        diary.note("token", name=name, turn=context.turn_id, token=token, attempt=context.attempt)
        return Pending(token, timeout_s)

    brain.tool(effect=effect, name=tool)(work)


def _watching(tool: str, effect: Effect, isolation: Isolation) -> None:
    def work(context: RunContext) -> Partial:
        _began(tool, "", context)
        while not context.token.is_expired:
            time.sleep(0.005)
        diary.note("expired", turn=context.turn_id, tool=tool, reason=context.token.reason)
        return Partial("as far as it went")

    brain.tool(effect=effect, name=tool, isolation=isolation)(work)


_signed("sign", Effect.LOCAL_WRITE, "it is signed")
_signed("peek", Effect.READ_ONLY, True)
_pending("send_off", Effect.NETWORK)
_pending("look_up", Effect.READ_ONLY)
_watching("watch_read", Effect.READ_ONLY, "thread")
_watching("watch_write", Effect.LOCAL_WRITE, "thread")
_watching("watch_apart", Effect.READ_ONLY, "process")


@brain.tool(effect=Effect.LOCAL_WRITE, isolation="process")
def deaf(context: RunContext) -> str:
    """Never looks at its token."""
    _began("deaf", "", context)
    time.sleep(60)
    return "slept"


@brain.tool(effect=Effect.LOCAL_WRITE)
def change(context: RunContext, path: str, before: str | None, after: str | None, gate: str = "") -> str:
    """Report a change, then wait at the gate."""
    context.record_change(path, before, after)
    _began("change", path, context)
    diary.pass_gate(gate)
    return f"changed {path}"


@brain.tool(effect=Effect.READ_ONLY)
def when_ready(context: RunContext, name: str) -> str:
    """Wait until the turn is ready."""
    _began("when_ready", name, context)
    return f"ready: {context.wait_ready()}"


@brain.tool(effect=Effect.NETWORK)
def delegate(message: str, session: str | None = None) -> ChildTurn:
    """Have another turn do it."""
    return ChildTurn(message, session_id=session)


def _hold(owner: type, method: str, place: str, turn_of: Callable[..., str]) -> None:
    """Put gates before and after a method, at which a test injects a fault into a real worker."""
    plain = getattr(owner, method)

    def wait_at(side: str, turn: str) -> None:
        gate = diary.ordered(f"{place}.{side}.{turn}")
        if gate:
            diary.note(f"{place}.{side}", turn=turn)
            diary.pass_gate(gate)

    @functools.wraps(plain)
    def held(self: Any, *args: Any, **named: Any) -> Any:
        turn = turn_of(*args, **named)
        wait_at("before", turn)
        answer = plain(self, *args, **named)
        wait_at("after", turn)
        return answer

    setattr(owner, method, held)


def _of_claim(claim: Any, *_: Any, **__: Any) -> str:
    return claim.turn_id


def _of_rows(rows: Any) -> str:
    return rows[0].turn_id


def _first(turn_id: str, *_: Any, **__: Any) -> str:
    return turn_id


def _second(session_id: str, turn_id: str, inputs: Any) -> str:
    return turn_id


def _first_of_many(turn_ids: Any) -> str:
    return turn_ids[0]


if os.environ.get("BRAINQ_APP", "").startswith(__name__):  # in its workers alone, not where a test imports it
    _hold(RedisTurns, "commit_calls", "commit", _of_claim)
    _hold(RedisTurns, "end", "end", _of_claim)
    _hold(RedisCalls, "park", "park", _of_claim)
    _hold(ApprovalRows, "request", "asked", _of_rows)
    _hold(BouncedInputs, "bounce", "bounce", _second)
    _hold(ChildDesk, "cancel_children", "orphans", _first_of_many)
    _hold(CallRows, "record_outcome", "record", _first)
    _hold(ChildDesk, "deliver", "deliver", _of_claim)
