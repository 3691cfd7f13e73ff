"""Approvals that the client's own user decides, asked by elicitation, in either version of the protocol."""

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
    """What a client brings back with its user's decisions. It is the client's word: all of it is looked up anew.

    seq    the events up to this one were told
    asks   by the approvals' ids, the arguments that were shown, as their hash
    """

    model_config = ConfigDict(extra="forbid")

    turn_id: str = Field(pattern=TURN_ID)
    seq: int = Field(ge=0)
    asks: dict[str, str]


def can_elicit(asked: McpRequest) -> bool:
    """Whether the client can ask its user, and the caller may decide."""
    session = asked.context.session
    capable = session.client_capabilities and session.client_capabilities.elicitation
    if not capable or (capable.url is not None and capable.form is None):
        return False
    return Verb.DECIDE in asked.caller.verbs and (asked.is_modern or session.can_send_request)


def elicitation_result(handle: AsyncTurnHandle, seq: int, pending: Sequence[Approval]) -> InputRequiredResult:
    """The call's answer for now, in the newer age: the client asks, and sends the call again."""
    asks = {approval.id: approval.args_hash for approval in pending}
    return InputRequiredResult(
        input_requests={approval.id: ElicitRequest(params=_form(approval)) for approval in pending},
        request_state=ElicitationRound(turn_id=handle.turn_id, seq=seq, asks=asks).model_dump_json(),
    )


def read_round(state: str) -> ElicitationRound:
    """Raises InvalidInput."""
    try:
        given: Any = json.loads(state)
    except ValueError:
        given = None
    found = read_input(ElicitationRound, "requestState", given)
    for approval_id in found.asks:
        if split_call_id(approval_id)[0] != found.turn_id:
            raise InvalidInput("requestState", "it has an approval of another turn")
    return found


async def apply_decisions(asked: McpRequest, found: ElicitationRound, answers: Mapping[str, Any]) -> bool:
    """Decide what the user decided. Whether that was all that was asked."""
    by = decider_name(asked.by(Verb.DECIDE), "")
    whole = True
    for approval_id, args_hash in found.asks.items():
        answer = answers.get(approval_id)
        decision = _read_decision(answer) if isinstance(answer, ElicitResult) else None
        with suppress(ApprovalDecided):  # somebody else was quicker
            match decision:
                case ("approve", _):
                    await asked.here.client.approve(approval_id, by=by, args_hash=args_hash)
                case ("deny", reason):
                    await asked.here.client.deny(approval_id, reason, by=by)
                case None:
                    whole = False
    return whole


async def elicit_now(
    asked: McpRequest, handle: AsyncTurnHandle, seq: int, pending: Sequence[Approval], place: StreamSlot
) -> bool:
    """Ask the client while its call is open, in the older age. Whether nothing of this is left to decide."""
    found = ElicitationRound(turn_id=handle.turn_id, seq=seq, asks={each.id: each.args_hash for each in pending})
    asking = asyncio.ensure_future(_elicit_all(asked, pending))
    elsewhere = asyncio.ensure_future(_wait_for_resume(handle, seq))
    stopping = asyncio.ensure_future(place.stopping.wait())
    try:
        await asyncio.wait({asking, elsewhere, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if asking.done():
            return await apply_decisions(asked, found, asking.result())
        return elsewhere.done()
    finally:
        for each in (asking, elsewhere, stopping):
            each.cancel()


async def _elicit_all(asked: McpRequest, pending: Sequence[Approval]) -> dict[str, ElicitResult]:
    session, request_id = asked.context.session, asked.context.request_id
    found: dict[str, ElicitResult] = {}
    for approval in pending:
        form = _form(approval)
        with suppress(MCPError):  # the client will not, or its user has gone: others may decide
            found[approval.id] = await session.elicit_form(form.message, FORM, related_request_id=request_id)
    return found


async def _wait_for_resume(handle: AsyncTurnHandle, seq: int) -> None:
    async for event in handle.events(seq):
        if event.kind is EventKind.TURN_RESUMED or event.is_final:
            return


def _form(approval: Approval) -> ElicitRequestFormParams:
    shown = json.dumps(approval.arguments, ensure_ascii=False, indent=2)
    if len(shown) > MAX_SHOWN_CHARS:
        shown = f"{shown[:MAX_SHOWN_CHARS]}\n[{len(shown) - MAX_SHOWN_CHARS:,} more characters]"
    why = f"\n{approval.reason}" if approval.reason else ""
    message = f"{approval.tool} ({approval.effect.value}) asks to run.{why}\n{shown}"
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
