"""What a tool returns to have another turn run, and to wait for its result."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ChildTurn:
    """The call parks until a turn in another session has ended; that turn's answer is the call's result.

    session_id   of the child; another one than the parent's. None: a new session, named after the call,
                 with the parent's prefix: `acme:42` has children in `acme:ch-...`
    message      the child's user message
    brain        the name of the brain that is to have it; None: its parent's
    options      more fields of the TurnRequest: model, system_prompt, limits, metadata, ...
    timeout_s    how long to wait for it at most, its waiting in its session's queue included
    """

    message: str
    session_id: str | None = None
    timeout_s: float = 3_600.0
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    brain: str | None = None
