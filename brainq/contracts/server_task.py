"""A result that a server makes as a task of its own: a call waits for it, and the server is asked."""

from __future__ import annotations

from dataclasses import dataclass, field

from brainq.contracts.claim import CallRef
from brainq.contracts.effect import Effect


@dataclass(frozen=True, slots=True)
class ServerTask:
    """What the function of a server's tool returns in place of the result.

    task_id     the server's name of the task
    poll_ms     how often the server wants to be asked; 0: it does not say
    timeout_s   how long the call waits at most
    held_by     the one connection that can ask; "": any
    """

    task_id: str
    poll_ms: int
    timeout_s: float
    held_by: str = ""


@dataclass(frozen=True, slots=True)
class WatchedTask:
    """A server's task, and the attempt of a call that waits for it.

    brain, effect   whose processes ask: those that run calls of this effect of this brain ("": the default one)
    token           completes the call
    begun_ms        when it was given, by Redis' clock
    row             as it stands in Redis
    """

    ref: CallRef
    attempt: int
    owner: str
    brain: str
    effect: Effect
    tool: str
    token: str
    task: ServerTask
    begun_ms: int
    row: str = field(default="", compare=False)
