"""How a function came back: with an outcome, or with the wish that its call waits for somebody outside."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any

from pydantic import TypeAdapter

from brainq.calls.values import jsonable
from brainq.contracts.child_turn import ChildTurn
from brainq.contracts.outcome import ToolOutcome
from brainq.contracts.server_task import ServerTask
from brainq.tools.pending import Pending

Ended = ToolOutcome | Pending | ChildTurn | ServerTask

_OUTCOMES: TypeAdapter[ToolOutcome] = TypeAdapter(ToolOutcome)


def plain_child(child: ChildTurn) -> ChildTurn:
    """With options that may cross a process line. Raises ValueError for what makes no child turn."""
    if not (math.isfinite(child.timeout_s) and child.timeout_s > 0):
        raise ValueError(f"the timeout_s of a ChildTurn is {child.timeout_s!r}; use finite seconds above 0")
    options = jsonable(child.options)
    if not isinstance(options, dict):
        raise ValueError("the options of a ChildTurn must be a dict of at most 256,000 characters as JSON")
    return replace(child, options=options)


def dump_ended(ended: Ended) -> dict[str, Any]:
    """As JSON, for the way out of a tool process."""
    if isinstance(ended, Pending):
        return {"pending": {"token": ended.token, "timeout_s": ended.timeout_s}}
    if isinstance(ended, ServerTask):
        return {"server_task": asdict(ended)}
    if isinstance(ended, ChildTurn):
        return {
            "child_turn": {
                "message": ended.message,
                "session_id": ended.session_id,
                "timeout_s": ended.timeout_s,
                "options": ended.options,
                "brain": ended.brain,
            }
        }
    return {"outcome": ended.model_dump(mode="json")}


def load_ended(body: dict[str, Any]) -> Ended:
    """What `dump_ended` made."""
    if "pending" in body:
        return Pending(**body["pending"])
    if "server_task" in body:
        return ServerTask(**body["server_task"])
    if "child_turn" in body:
        return ChildTurn(**body["child_turn"])
    return _OUTCOMES.validate_python(body["outcome"])
