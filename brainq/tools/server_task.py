"""Asking a server for the task that a call waits for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from brainq.contracts.server_task import ServerTask


@dataclass(frozen=True, slots=True)
class Working:
    """The server is still at it. `message` is its words; `poll_ms` as of ServerTask."""

    message: str = ""
    poll_ms: int = 0


@dataclass(frozen=True, slots=True)
class TaskEnd:
    """
    result    what the tool's function would have returned, or the ToolError or OutcomeUnknown it would have raised
    goes_on   the server may still be at it: it is told that nobody waits
    """

    result: Any
    goes_on: bool = False


class ServerAway(Exception):
    """The server cannot be asked just now; it may know the task all the same."""


class TaskServer(Protocol):
    """Used on the process's event loop. Fitted by `tools.mcp.tasks.McpTasks`.

    ask      raises ServerAway
    cancel   best effort: what cannot be said is not
    """

    async def ask(self, task: ServerTask) -> Working | TaskEnd: ...
    async def cancel(self, task: ServerTask) -> None: ...
