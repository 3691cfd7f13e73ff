"""The brain of simulated turns. The seed and the ids decide what its model replies and how long its tools take."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random

from brainq import (
    Approvals,
    Brain,
    Children,
    ChildTurn,
    Effect,
    Limits,
    Pending,
    RunContext,
    ScriptedProvider,
    ToolError,
)
from brainq.contracts.callbacks import TurnEnd, UsageInfo
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.engine.models.scripted import ScriptedFailure, calls, fails, says
from lab.simulate import ledger

MAX_TOOL_S = 6.0
ONCE = frozenset({"write", "send", "note", "sign"})
TOOLS = ("read", "read", "read", "write", "write", "note", "send", "again", "sign", "ask", "delegate", "slow")
Record = Callable[[RunContext, str, str], ledger.Effect]


def wanted(seed: str, request: ModelRequest) -> ModelReply | ScriptedFailure:
    """Return the model's reply to one step."""
    draw = Random(f"{seed} {request.turn_id} {request.step}")
    time.sleep(draw.choice((0.05, 0.2, 0.6, 2.0)))
    reply = _reply(draw, request)
    roll = draw.random()
    if roll < 0.04:
        return fails("stream", attempts=draw.randint(1, 4), then=reply, after_text="half of ")
    if roll < 0.045:
        return fails("server", retryable=False)
    return reply


def _reply(draw: Random, request: ModelRequest) -> ModelReply:
    plan = Random(f"{request.turn_id} plan")
    if request.step > plan.choice((0, 1, 1, 2, 2, 3)):
        return says(f"the answer of {request.turn_id} " * draw.randint(1, 12))
    names = [draw.choice(TOOLS) for _ in range(draw.choice((1, 1, 2, 3, 4)))]
    if request.turn_id.startswith("ch-"):
        names = [name for name in names if name != "delegate"] or ["read"]
    wants = [(name, {"name": f"n{draw.randint(1, 4)}"}) for name in names]
    roll = draw.random()
    if roll < 0.02:
        return calls(*wants, finish="length")
    if roll < 0.04:
        return calls(*wants[1:], (wants[0][0], '{"name": '))
    return calls(*wants, text="Let me see. " if roll < 0.5 else "")


def make_brain(seed: str, record: Record, give: Callable[[str], None], fails_now: Callable[[], bool]) -> Brain:
    """Return the brain of a world.

    record      records that a function starts: (context, tool, lane)
    give        receives the token of an outside call
    fails_now   returns whether a callback of the finalizer fails
    """
    brain = Brain(
        "simulated",
        ScriptedProvider(rules=lambda request: wanted(seed, request)),
        "Do as you are told.",
        limits=Limits(timeout_s=60.0, max_steps=5),
        approvals=Approvals(timeout_s=40.0),
        children=Children(max_depth=1, max_turns=2),
    )

    def work(tool: str, context: RunContext, name: str, lane: str = "") -> str:
        effect = record(context, tool, lane)
        draw = Random(f"{seed} {context.turn_id} {context.call_id} {context.attempt}")
        seconds = draw.choice((0.01, 0.1, 0.1, 0.5, 1.5))
        if tool == "slow":
            seconds = draw.choice((0.2, MAX_TOOL_S - 0.02, MAX_TOOL_S + 3.0, MAX_TOOL_S + 15.0))
        if draw.random() < 0.5:
            time.sleep(seconds)
        else:
            context.token.wait(seconds)
        effect.is_over = True
        if draw.random() < 0.08:
            raise ToolError(f"{tool} {name} failed", retryable=draw.random() < 0.5)
        return f"{tool} {name}"

    _add_tools(brain, work, record, give)

    @brain.on_usage
    def used(usage: UsageInfo) -> None:  # pyright: ignore[reportUnusedFunction]
        if fails_now():
            raise OSError("the callback is away")

    @brain.on_turn_end
    def ended(turn: TurnEnd) -> None:  # pyright: ignore[reportUnusedFunction]
        if fails_now():
            raise OSError("the callback is away")

    return brain


def _add_tools(brain: Brain, work: Callable[..., str], record: Record, give: Callable[[str], None]) -> None:
    @brain.tool(effect=Effect.READ_ONLY, timeout_s=MAX_TOOL_S)
    def read(context: RunContext, name: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Read."""
        return work("read", context, name)

    @brain.tool(effect=Effect.LOCAL_WRITE, timeout_s=MAX_TOOL_S)
    def write(context: RunContext, name: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Write, in the lane of the session."""
        return work("write", context, name, f"session {context.session_id}")

    @brain.tool(effect=Effect.LOCAL_WRITE, timeout_s=MAX_TOOL_S, resources=("note:{name}",))
    def note(context: RunContext, name: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Write a note that all sessions share."""
        return work("note", context, name, f"note {name}")

    @brain.tool(effect=Effect.NETWORK, timeout_s=MAX_TOOL_S)
    def send(context: RunContext, name: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Send a letter."""
        return work("send", context, name, f"session {context.session_id}")

    @brain.tool(effect=Effect.NETWORK, timeout_s=MAX_TOOL_S, idempotent=True)
    def again(context: RunContext, name: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Do what may be done again, with the same key."""
        return work("again", context, name, f"session {context.session_id}")

    @brain.tool(effect=Effect.DESTRUCTIVE, timeout_s=MAX_TOOL_S, approval=True)
    def sign(context: RunContext, name: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Sign what a person has approved."""
        return work("sign", context, name, f"session {context.session_id}")

    @brain.tool(effect=Effect.READ_ONLY, timeout_s=MAX_TOOL_S)
    def slow(context: RunContext, name: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Read for long, and now and then for too long."""
        return work("slow", context, name)

    @brain.tool(effect=Effect.NETWORK, timeout_s=MAX_TOOL_S)
    def ask(context: RunContext, name: str) -> Pending:  # pyright: ignore[reportUnusedFunction]
        """Ask somebody outside."""
        record(context, "ask", "").is_over = True
        token = context.outside_token()
        give(token)
        return Pending(token, timeout_s=40.0)

    @brain.tool(effect=Effect.NETWORK, timeout_s=MAX_TOOL_S)
    def delegate(context: RunContext, name: str) -> ChildTurn:  # pyright: ignore[reportUnusedFunction]
        """Have another turn do it."""
        record(context, "delegate", "").is_over = True
        return ChildTurn(f"do {name}", timeout_s=50.0, options={"limits": {"timeout_s": 30.0, "max_steps": 3}})
