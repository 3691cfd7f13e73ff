"""Follow a turn for a waiting client.

Events become progress notifications, and approvals become questions to the client's user.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, cast

import anyio
from mcp import MCPError
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from pydantic import BaseModel, ConfigDict, Field

from brainq.app.access import Verb
from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.event import EventKind, TurnEvent
from brainq.contracts.ids import split_call_id
from brainq.contracts.people import Approval
from brainq.contracts.status import Awaits
from brainq.contrib.mcp_server.requests import McpRequest, read_input
from brainq.errors import ApprovalDecided, InvalidInput
from brainq.gateway.edge.limits import StreamSlot
from brainq.gateway.edge.request import TURN_ID
from brainq.gateway.rest.event_stream import EventReader
from brainq.gateway.rest.turn_control import decide

EVERY_S = 0.25
"""The minimum interval between notifications of text, because a model sends too many deltas."""
SendProgress = Callable[[float, str], Awaitable[None]]
"""A function that sends a progress value, which never decreases, and a message."""
MAX_SHOWN_CHARS = 4_000
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "decision": {"type": "string", "title": "Decision", "enum": ["approve", "deny"]},
        "reason": {"type": "string", "title": "Reason", "description": "The reason for a denial; the model reads it."},
    },
    "required": ["decision"],
}
Decision = tuple[Literal["approve", "deny"], str]


def progress_text(event: TurnEvent) -> str:
    """Return a short message about an event, or "" if it is not reported. Text is passed through."""
    data = cast("dict[str, Any]", event.data)
    match event.kind:
        case EventKind.TURN_QUEUED:
            return _queue_text(data["ahead"], data.get("why", ""))
        case EventKind.TURN_ACTIVE:
            return "begins"
        case EventKind.STEP_STARTED:
            again = f", attempt {data['attempt']}" if data["attempt"] > 1 else ""
            return f"step {data['step']}{again}: calling the model"
        case EventKind.STEP_RETRIED:
            return f"step {data['step']}: the model failed; calling it again"
        case EventKind.TEXT_DELTA:
            return data["text"]
        case EventKind.CALL_RUNNING:
            return f"{data['tool']} runs"
        case EventKind.CALL_PROGRESS:
            return str(data.get("message") or "")
        case EventKind.CALL_ENDED:
            return f"{data['tool']}: {data['status']}"
        case EventKind.APPROVAL_REQUESTED:
            return f"{data['tool']} needs an approval"
        case EventKind.APPROVAL_DECIDED:
            return f"an approval was decided: {data['decision']}"
        case EventKind.TURN_PARKED:
            return f"waits for: {data['awaits']}"
        case EventKind.TURN_RESUMED:
            return "resumes"
        case EventKind.INPUT_CONSUMED:
            return "has read your input"
        case EventKind.TURN_CANCELLING:
            return "is being cancelled"
        case EventKind.TURN_CLOSING:
            return f"ends: {data['ending']}"
        case _:
            return ""


def _queue_text(ahead: int, why: str) -> str:
    match why:
        case "paused":
            return "waits: its session is paused"
        case "room":
            return f"waits for capacity behind {ahead} turns of its tenant"
        case _:
            return f"waits for {ahead} earlier turns of its session"


class ProgressReporter:
    """A reporter of events in order. It sends text every EVERY_S seconds, and before another event."""

    def __init__(self, send: SendProgress, now: Callable[[], float] = time.monotonic) -> None:
        self._send = send
        self._now = now
        self._text = ""
        self._seq = 0
        self._sent_at = -EVERY_S

    async def report(self, event: TurnEvent) -> None:
        words = progress_text(event)
        if event.kind is EventKind.TEXT_DELTA:
            self._text += words
            self._seq = event.seq
            if self._now() - self._sent_at >= EVERY_S:
                await self._flush()
        elif words:
            await self._flush()
            await self._send(float(event.seq), words)

    async def _flush(self) -> None:
        if self._text:
            text, self._text = self._text, ""
            self._sent_at = self._now()
            await self._send(float(self._seq), text)


@dataclass(frozen=True, slots=True)
class FollowOutcome:
    """The last event that was read, and the approvals that the turn waits for, if any."""

    last_event: int
    approvals: tuple[Approval, ...] = ()


async def follow_turn(
    request: McpRequest,
    handle: AsyncTurnHandle,
    slot: StreamSlot,
    after: int,
    wait_s: float,
    progress: ProgressReporter,
) -> FollowOutcome:
    """Report the events after `after` for at most `wait_s`. Raises RequestRejected once the token is invalid."""
    clock = asyncio.get_running_loop().time
    until, checked_at, seq = clock() + wait_s, clock(), after
    heartbeat_s = request.gateway.settings.http_heartbeat_s
    reading = EventReader(handle.events(after))
    stopping = asyncio.ensure_future(slot.stopping.wait())
    try:
        while (remaining_s := until - clock()) > 0 and not stopping.done():
            if clock() - checked_at >= heartbeat_s:
                checked_at = clock()
                await request.require_valid_token()
            if not await reading.wait(min(remaining_s, heartbeat_s), stopping):
                continue
            event = reading.next.result()
            if event is None:
                break
            seq = event.seq
            await progress.report(event)
            if event.is_final:
                break
            if _waits_for_people(event) and (pending := await pending_approvals(handle)):
                return FollowOutcome(seq, pending)
            reading.advance()
    finally:
        stopping.cancel()
        with anyio.CancelScope(shield=True):  # the SDK cancels a handler again at each of its waits
            await reading.close()
    return FollowOutcome(seq)


def _waits_for_people(event: TurnEvent) -> bool:
    return event.kind is EventKind.TURN_PARKED and event.data["awaits"] == Awaits.PEOPLE


async def pending_approvals(handle: AsyncTurnHandle) -> tuple[Approval, ...]:
    """Return the approvals that the turn waits for now."""
    return tuple(found for found in await handle.approvals() if found.state == "pending")


class ElicitationRound(BaseModel):
    """The state that a client sends back with its user's decisions. It is not trusted, so all of it is checked.

    seq    the number of the last event that was reported
    asks   approval id -> the hash of the arguments that were shown
    """

    model_config = ConfigDict(extra="forbid")

    turn_id: str = Field(pattern=TURN_ID)
    seq: int = Field(ge=0)
    asks: dict[str, str]


def can_elicit(request: McpRequest) -> bool:
    """Return whether the client can question its user and the caller may decide."""
    session = request.context.session
    capable = session.client_capabilities and session.client_capabilities.elicitation
    if not capable or (capable.url is not None and capable.form is None):
        return False
    return Verb.DECIDE in request.caller.verbs and (request.is_modern or session.can_send_request)


def elicitation_result(handle: AsyncTurnHandle, seq: int, pending: Sequence[Approval]) -> InputRequiredResult:
    """Return the provisional result of a call in modern versions. The client questions its user and calls again."""
    asks = {approval.id: approval.args_hash for approval in pending}
    return InputRequiredResult(
        input_requests={approval.id: ElicitRequest(params=_form(approval)) for approval in pending},
        request_state=ElicitationRound(turn_id=handle.turn_id, seq=seq, asks=asks).model_dump_json(),
    )


def read_round(state: str) -> ElicitationRound:
    """Read the state that a client sent back. Raises InvalidInput."""
    try:
        state_json: Any = json.loads(state)
    except ValueError:
        state_json = None
    found = read_input(ElicitationRound, "requestState", state_json)
    for approval_id in found.asks:
        if split_call_id(approval_id)[0] != found.turn_id:
            raise InvalidInput(
                "requestState", "the state names an approval of another turn; send the state back unchanged"
            )
    return found


async def apply_decisions(request: McpRequest, shown: ElicitationRound, answers: Mapping[str, Any]) -> bool:
    """Apply the user's decisions. Returns whether there was one for every approval."""
    deciding, is_complete = request.needing(Verb.DECIDE), True
    for approval_id, args_hash in shown.asks.items():
        answer = answers.get(approval_id)
        decision = _read_decision(answer) if isinstance(answer, ElicitResult) else None
        with suppress(ApprovalDecided):  # another decision came first
            match decision:
                case ("approve", _):
                    await decide(deciding, approval_id, approves=True, args_hash=args_hash)
                case ("deny", reason):
                    await decide(deciding, approval_id, approves=False, reason=reason)
                case None:
                    is_complete = False
    return is_complete


async def elicit_now(
    request: McpRequest, handle: AsyncTurnHandle, seq: int, pending: Sequence[Approval], slot: StreamSlot
) -> bool:
    """Question the client's user while the call is open, as old versions of the protocol do.

    Returns whether nothing is left to decide.
    """
    shown = ElicitationRound(turn_id=handle.turn_id, seq=seq, asks={each.id: each.args_hash for each in pending})
    asking = asyncio.ensure_future(_elicit_all(request, pending))
    elsewhere = asyncio.ensure_future(_wait_for_resume(handle, seq))
    stopping = asyncio.ensure_future(slot.stopping.wait())
    try:
        await asyncio.wait({asking, elsewhere, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if asking.done():
            return await apply_decisions(request, shown, asking.result())
        return elsewhere.done()
    finally:
        for each in (asking, elsewhere, stopping):
            each.cancel()


async def _elicit_all(request: McpRequest, pending: Sequence[Approval]) -> dict[str, ElicitResult]:
    session, request_id = request.context.session, request.context.request_id
    found: dict[str, ElicitResult] = {}
    for approval in pending:
        form = _form(approval)
        with suppress(MCPError):  # if the client or its user does not answer, others may decide
            found[approval.id] = await session.elicit_form(form.message, FORM, related_request_id=request_id)
    return found


async def _wait_for_resume(handle: AsyncTurnHandle, seq: int) -> None:
    async for event in handle.events(seq):
        if event.kind is EventKind.TURN_RESUMED or event.is_final:
            return


def _form(approval: Approval) -> ElicitRequestFormParams:
    arguments = json.dumps(approval.arguments, ensure_ascii=False, indent=2)
    if len(arguments) > MAX_SHOWN_CHARS:
        arguments = f"{arguments[:MAX_SHOWN_CHARS]}\n[{len(arguments) - MAX_SHOWN_CHARS:,} more characters]"
    why = f"\n{approval.reason}" if approval.reason else ""
    message = f"{approval.tool} ({approval.effect.value}) asks to run.{why}\n{arguments}"
    return ElicitRequestFormParams(message=message, requested_schema=FORM)


def _read_decision(answer: ElicitResult) -> Decision | None:
    """Return the user's decision, or None if the user did not decide."""
    if answer.action == "decline":
        return "deny", ""
    content = answer.content or {}
    reason = str(content.get("reason") or "")[:2_000]
    match content.get("decision") if answer.action == "accept" else None:
        case "approve":
            return "approve", ""
        case "deny":
            return "deny", reason
        case _:
            return None
