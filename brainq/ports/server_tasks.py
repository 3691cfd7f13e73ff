"""Calls that wait for tasks of servers, and who asks for them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, Protocol

from brainq.contracts.claim import CallClaim
from brainq.contracts.effect import Effect
from brainq.contracts.server_task import ServerTask, WatchedTask


class ServerTasks(Protocol):
    """Each is watched by one process at a time, which beats for it. Fitted by `state.server_tasks.RedisServerTasks`.

    put      before the call parks, so that no kill leaves a parked call for whose task nobody asks
    beat     `OK`; `BEGINS` while the call has not parked yet; `OVER` when it waits no more
    lapsed   those nobody beats for, of these brains and effects
    take     True for one of those who ask for a lapsed one
    leave    have another process take it at once
    tell     tells readers how far it is; the same words again are told once
    """

    def put(self, claim: CallClaim, task: ServerTask, token: str) -> WatchedTask: ...
    def beat(self, task: WatchedTask) -> Literal["OK", "BEGINS", "OVER"]: ...
    def lapsed(self, places: Collection[tuple[str, Effect]], most: int) -> Sequence[WatchedTask]: ...
    def take(self, task: WatchedTask) -> bool: ...
    def leave(self, tasks: Sequence[WatchedTask]) -> None: ...
    def drop(self, task: WatchedTask) -> None: ...
    def tell(self, task: WatchedTask, message: str) -> None: ...
