"""What belongs to a turn's events and is not in them: arguments, results, the turn's own result."""

from __future__ import annotations

from typing import Any, cast

from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.event import EventKind, TurnEvent
from brainq.contracts.history import TurnCall
from brainq.contracts.ids import call_id, call_place, full_call_id
from brainq.http.chat_fold import More

NOTHING = More()
LAST = 10**9 - 1
"""No step has a call of a higher index."""


class CallDetails:
    """Looks details of one turn up. A call that has ended is looked up once."""

    def __init__(self, handle: AsyncTurnHandle) -> None:
        self._handle = handle
        self._ended: dict[str, TurnCall] = {}

    async def of(self, event: TurnEvent) -> More:
        """Raises as the handle's verbs do."""
        data = cast("dict[str, Any]", event.data)
        match event.kind:
            case EventKind.STEP_ENDED if data["calls"]:
                return More(calls=await self._calls([asked["call"] for asked in data["plan"]]))
            case EventKind.CALL_ENDED:
                return More(calls=await self._calls([data["call"]]))
            case EventKind.APPROVAL_DECIDED if data.get("edited"):
                full = full_call_id(self._handle.turn_id, data["call"])
                edited = [found for found in await self._handle.approvals() if found.id == full]
                return More(arguments=edited[0].arguments if edited else None)
            case EventKind.RESULT:
                return More(result=await self._handle.result(timeout_s=0))
            case _:
                return NOTHING

    async def _calls(self, wanted: list[str]) -> tuple[TurnCall, ...]:
        """The calls of these ids, all of one step. No more is read than lies between the first and the last of them."""
        ids = [full_call_id(self._handle.turn_id, call) for call in wanted]
        if all(full in self._ended for full in ids):
            return tuple(self._ended[full] for full in ids)
        places = [call_place(call) for call in wanted]
        (step, first), (_, last) = min(places), max(places)
        found = await self._handle.calls(last - first + 1, self._before(step, first))
        calls = {call.id: call for call in found}
        self._ended.update((full, call) for full, call in calls.items() if call.status.is_settled)
        return tuple(calls[full] for full in ids if full in calls)

    def _before(self, step: int, index: int) -> str | None:
        """What would be the id before a call's, whether or not there is such a call; None: there is none."""
        if index:
            return full_call_id(self._handle.turn_id, call_id(step, index - 1))
        return full_call_id(self._handle.turn_id, call_id(step - 1, LAST)) if step else None
