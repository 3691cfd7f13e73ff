"""Those who watch tasks, and hear here of what no task did."""

from __future__ import annotations

from typing import Protocol

from brainq.contracts.claim import CallRef


class Watchers(Protocol):
    """Hears what ended in no worker's task, but by the sweeper. Fitted by `tasks.events.TaskEvents`.

    turn    a turn was ended
    call    an attempt of a call was given up, or lost
    """

    def turn(self, session_id: str, turn_id: str, fence: int, did: str) -> None: ...
    def call(self, ref: CallRef, attempt: int, tool: str, did: str) -> None: ...
