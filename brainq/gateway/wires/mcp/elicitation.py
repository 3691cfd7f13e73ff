"""Approvals that the client's own user decides, asked by elicitation, in old and modern versions of the protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

from mcp import MCPError
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from pydantic import BaseModel, ConfigDict, Field

from brainq.access import Verb
from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.event import EventKind
from brainq.contracts.ids import split_call_id
from brainq.contracts.people import Approval
from brainq.errors import ApprovalDecided, InvalidInput
from brainq.gateway.edge.dependencies import TURN_ID
from brainq.gateway.edge.limits import StreamSlot
from brainq.gateway.rest.approvals import decider_name
from brainq.gateway.wires.mcp.requests import McpRequest, read_input

MAX_SHOWN_CHARS = 4_000

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "decision": {"type": "string", "title": "Decision", "enum": ["approve", "deny"]},
        "reason": {"type": "string", "title": "Reason", "description": "If you deny, the model reads it."},
    },
    "required": ["decision"],
}

Decision = tuple[Literal["approve", "deny"], str]


class ElicitationRound(BaseModel):
    """A client sends this back with its user's decisions. It is not trusted: all of it is looked up again.

    seq    the last event that was reported
    asks   approval id -> hash of the arguments that were shown
    """

    model_config = ConfigDict(extra="forbid")

    turn_id: str = Field(pattern=TURN_ID)
    seq: int = Field(ge=0)
    asks: dict[str, str]


def can_elicit(request: McpRequest) -> bool:
    """Whether the client can ask its user, and the caller may decide."""
    session = request.context.session
    capable = session.client_capabilities and session.client_capabilities.elicitation
    if not capable or (capable.url is not None and capable.form is None):
        return False
    return Verb.DECIDE in request.caller.verbs and (request.is_modern or session.can_send_request)


def elicitation_result(handle: AsyncTurnHandle, seq: int, pending: Sequence[Approval]) -> InputRequiredResult:
    """The call's result for now, in modern versions: the client asks its user, and sends the call again."""
    asks = {approval.id: approval.args_hash for approval in pending}
    return InputRequiredResult(
        input_requests={approval.id: ElicitRequest(params=_form(approval)) for approval in pending},
        request_state=ElicitationRound(turn_id=handle.turn_id, seq=seq, asks=asks).model_dump_json(),
    )


def read_round(state: str) -> ElicitationRound:
    """Raises InvalidInput."""
    try:
        state_json: Any = json.loads(state)
    except ValueError:
        state_json = None
    found = read_input(ElicitationRound, "requestState", state_json)
    for approval_id in found.asks:
        if split_call_id(approval_id)[0] != found.turn_id:
            raise InvalidInput("requestState", "it has an approval of another turn")
    return found


async def apply_decisions(request: McpRequest, shown: ElicitationRound, answers: Mapping[str, Any]) -> bool:
    """Apply the user's decisions. Whether there was one for every approval."""
    decided_by = decider_name(request.principal(Verb.DECIDE), "")
    is_complete = True
    for approval_id, args_hash in shown.asks.items():
        answer = answers.get(approval_id)
        decision = _read_decision(answer) if isinstance(answer, ElicitResult) else None
        with suppress(ApprovalDecided):  # another decision came first
            match decision:
                case ("approve", _):
                    await request.gateway.client.approve(approval_id, by=decided_by, args_hash=args_hash)
                case ("deny", reason):
                    await request.gateway.client.deny(approval_id, reason, by=decided_by)
                case None:
                    is_complete = False
    return is_complete


async def elicit_now(
    request: McpRequest, handle: AsyncTurnHandle, seq: int, pending: Sequence[Approval], slot: StreamSlot
) -> bool:
    """Ask the client while its call is open, in old versions. Whether nothing is left to decide."""
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
        with suppress(MCPError):  # the client or its user does not answer: others may decide
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
    """None: the user did not decide."""
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
