"""Brains for turns that two sides race about, at a write that is the first call of the first step."""

from __future__ import annotations

from collections import Counter

from brainq import Approvals, Brain, Effect, Pending, RunContext, ScriptedProvider
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.engine.models.scripted import calls, says
from tests.support.races import Line


def one_call(request: ModelRequest) -> ModelReply:
    return calls(("write", {"name": "x"})) if request.step == 1 else says("done")


def two_calls(request: ModelRequest) -> ModelReply:
    """Return the reply. The step has another call after the write, so that the side that is late meets an open step."""
    return calls(("write", {"name": "x"}), ("note", {})) if request.step == 1 else says("done")


def note() -> str:
    """Note."""
    return "noted"


class Approved:
    """A brain whose only call, a write, waits for a person."""

    def __init__(self, timeout_s: float) -> None:
        self.ran: Counter[str] = Counter()
        self.brain = Brain(
            "races", ScriptedProvider(rules=two_calls), "Help.", approvals=Approvals(timeout_s=timeout_s)
        )
        self.brain.tool(effect=Effect.LOCAL_WRITE)(note)

        @self.brain.tool(effect=Effect.LOCAL_WRITE, approval=True)
        def write(context: RunContext, name: str) -> str:  # pyright: ignore[reportUnusedFunction]
            """Write."""
            self.ran[context.turn_id] += 1
            return f"wrote {name}"


class EndsAtTheLine:
    """A brain whose only write ends at the line of a race."""

    def __init__(self) -> None:
        self.lines: dict[str, Line] = {}
        self.brain = Brain("races", ScriptedProvider(rules=one_call), "Help.")

        @self.brain.tool(effect=Effect.LOCAL_WRITE)
        def write(context: RunContext, name: str) -> str:  # pyright: ignore[reportUnusedFunction]
            """Write."""
            self.lines.pop(context.turn_id)()
            return f"wrote {name}"


class AnswersAtTheLine:
    """A brain whose model answers at the line of a race, or at once if there is none.

    shown: maps (turn, step) to the users' messages in the request.
    """

    def __init__(self) -> None:
        self.lines: dict[str, Line] = {}
        self.shown: dict[tuple[str, int], list[str]] = {}
        self.brain = Brain("races", ScriptedProvider(rules=self._answer), "Help.")

    def _answer(self, request: ModelRequest) -> ModelReply:
        self.shown[request.turn_id, request.step] = [m.content for m in request.messages if m.role == "user"]
        line = self.lines.pop(request.turn_id, None)
        if line is not None:
            line()
        return says(f"answer {request.step}")


class Waiting:
    """A brain whose only write waits for its result from outside."""

    def __init__(self, timeout_s: float) -> None:
        self.tokens: dict[str, str] = {}
        self.brain = Brain("races", ScriptedProvider(rules=two_calls), "Help.")
        self.brain.tool(effect=Effect.LOCAL_WRITE)(note)

        @self.brain.tool(effect=Effect.LOCAL_WRITE)
        def write(context: RunContext, name: str) -> Pending:  # pyright: ignore[reportUnusedFunction]
            """Write."""
            token = self.tokens[context.turn_id] = context.outside_token()
            return Pending(token, timeout_s=timeout_s)
