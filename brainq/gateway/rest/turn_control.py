"""Control of a turn: input, cancel, holds, results of the client's tools, and a retry of dead finalizer steps."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, Path
from pydantic import Field, JsonValue

from brainq.access import Verb
from brainq.client.checks import MAX_COMMENT_CHARS, MAX_HOLD_S, MAX_REASON_CHARS
from brainq.contracts.file import MAX_FILES, read_files
from brainq.contracts.people import DEFAULT_HOLD_S, Approval, HoldPolicy, Receipt, StandingHold
from brainq.contracts.turn import MAX_MESSAGE_CHARS
from brainq.gateway.edge.dependencies import ID, TURN_ID, Gateway, GatewayDep, PrincipalDep, TurnDep
from brainq.gateway.edge.problems import problem_responses
from brainq.gateway.rest.bodies import Answer, Body, FileBody
from brainq.gateway.rest.turns import CancelAnswer, RetryAnswer, RetryBody, StepRetry
from brainq.operator.operator import Operator
from brainq.tools.results import WithFiles

MAX_BY_CHARS = 90  # with the caller's name before it


class InputBody(Body):
    """Follow-up input. With `readiness` or `attachments` the text may be empty."""

    text: str = Field(default="", max_length=MAX_MESSAGE_CHARS)
    client_message_id: str | None = Field(default=None, pattern=ID)
    readiness: bool | None = None
    expected_turn_id: str | None = Field(default=None, pattern=TURN_ID)
    attachments: list[FileBody] = Field(default=[], max_length=MAX_FILES)


class ReasonBody(Body):
    reason: str = Field(default="", max_length=MAX_REASON_CHARS)


class HoldBody(Body):
    """The reason of a hold or a readiness flag, its lifetime in seconds, and what happens at its expiry."""

    reason: str = Field(default="", max_length=MAX_REASON_CHARS)
    expires_in_s: float = Field(default=DEFAULT_HOLD_S, gt=0, le=MAX_HOLD_S, allow_inf_nan=False)
    on_expiry: HoldPolicy = "deny"


class HoldList(Answer):
    holds: tuple[StandingHold, ...]


class PlacedHold(Answer):
    """A hold, or a readiness flag, by whose id it is released."""

    id: str
    session_id: str
    turn_id: str | None = None


class ReleaseAnswer(Answer):
    """`released` is false where it was released or had expired before."""

    released: bool


class ApprovalList(Answer):
    approvals: tuple[Approval, ...]


class ApprovalPage(ApprovalList):
    """`next`: give it as `before` for the page after this one; None on the last."""

    next: str | None = None


class ApproveBody(Body):
    """`by`: the person who decides, beside the caller; `args_hash`: only if the arguments still are those of it."""

    by: str = Field(default="", max_length=MAX_BY_CHARS)
    args_hash: str | None = Field(default=None, max_length=200)


class DenyBody(Body):
    """The model reads the reason."""

    by: str = Field(default="", max_length=MAX_BY_CHARS)
    reason: str = Field(default="", max_length=MAX_COMMENT_CHARS)


class EditBody(Body):
    """The call runs with these arguments in place of the model's; `args_hash` is of those that were edited."""

    by: str = Field(default="", max_length=MAX_BY_CHARS)
    args_hash: str | None = Field(default=None, max_length=200)
    arguments: dict[str, JsonValue]


class OutsideResult(Body):
    """The result that a call waits for, and files beside it; `partial`: a part of what was asked for."""

    result: JsonValue
    files: list[FileBody] = Field(default=[], max_length=MAX_FILES)
    partial: bool = False


class OutsideError(Body):
    """There is no result; the model reads why."""

    error: str = Field(min_length=1, max_length=2_000)


class ResultReceipt(Answer):
    """`settled`: the call has it; `early`: it will, once its tool has returned; `late`: the call has ended."""

    taken: Literal["settled", "early", "late"]


def result_with_files(body: OutsideResult) -> object:
    """The result as the client takes it. Raises InvalidInput for an invalid file."""
    if not body.files:
        return body.result
    return WithFiles(body.result, read_files("files", [file.model_dump() for file in body.files]))


router = APIRouter(prefix="/v1/turns/{turn_id}", tags=["turns"])
PathId = Annotated[str, Path(pattern=ID)]

CallPath = Annotated[
    str,
    Path(
        pattern="^([A-Za-z0-9][A-Za-z0-9_-]{2,63}[-.])?c[0-9]{1,9}-[0-9]{1,9}$",
        description="As the turn's events have it, or its `id` over all turns.",
    ),
]


@router.post("/input", responses=problem_responses(409))
async def steer(handle: TurnDep, principal: PrincipalDep, body: InputBody) -> Receipt:
    """Send input into the turn. The receipt is `accepted`; ask for it again to learn what became of the input.

    Of a turn that has ended it becomes a turn of its own: this needs the verb `submit`, too.
    """
    principal.require_verb(Verb.SUBMIT)
    return await handle.steer(
        body.text,
        client_message_id=body.client_message_id,
        readiness=body.readiness,
        expected_turn_id=body.expected_turn_id,
        attachments=[file.model_dump() for file in body.attachments],
    )


@router.get("/input/{client_message_id}")
async def receipt(handle: TurnDep, client_message_id: PathId) -> Receipt:
    """What became of an input of the turn's session: consumed by which step, or bounced to which turn."""
    return await handle.receipt(client_message_id)


@router.post("/calls/{call_id}/result", responses=problem_responses(409))
async def call_result(handle: TurnDep, call_id: CallPath, body: OutsideResult | OutsideError) -> ResultReceipt:
    """Give a call of one of the turn's `client_tools` its result, or report that there is none. It is accepted once."""
    if isinstance(body, OutsideResult):
        return ResultReceipt(taken=await handle.give_result(call_id, result_with_files(body), partial=body.partial))
    return ResultReceipt(taken=await handle.give_error(call_id, body.error))


@router.post("/cancel")
async def cancel(handle: TurnDep, body: ReasonBody | None = None) -> CancelAnswer:
    """Ask for the turn to be cancelled."""
    return CancelAnswer(cancelled=await handle.cancel(body.reason if body else ""))


@router.get("/holds")
async def holds(handle: TurnDep) -> HoldList:
    """The holds on the turn, its readiness flag among them."""
    return HoldList(holds=await handle.holds())


@router.post("/holds", status_code=201)
async def hold(handle: TurnDep, body: HoldBody | None = None) -> PlacedHold:
    """Keep calls that change something from starting until the hold is released."""
    wanted = body or HoldBody()
    placed = await handle.hold(wanted.reason, expires_in_s=wanted.expires_in_s, on_expiry=wanted.on_expiry)
    return PlacedHold(id=placed.id, session_id=placed.session_id, turn_id=placed.turn_id)


@router.delete("/holds/{hold_id}")
async def release(handle: TurnDep, hold_id: PathId) -> ReleaseAnswer:
    """Release a hold."""
    return ReleaseAnswer(released=await handle.release(hold_id))


@router.get("/approvals")
async def approvals(handle: TurnDep) -> ApprovalList:
    """Every call of the turn that people are, or were, asked about."""
    return ApprovalList(approvals=await handle.approvals())


@router.post("/finalizer/retry", responses=problem_responses(410))
async def retry(
    handle: TurnDep, gateway: GatewayDep, principal: PrincipalDep, body: RetryBody | None = None
) -> RetryAnswer:
    """Run dead finalizer steps again, in this process. The answer has the outcome of each."""
    wanted = body.step if body else ""
    loop = asyncio.get_running_loop()
    with gateway.streams.enter(principal.caller.counted_as):
        steps = await loop.run_in_executor(gateway.long_work, _retry_steps, gateway, handle.turn_id, wanted)
    return RetryAnswer(turn_id=handle.turn_id, steps=steps)


def _retry_steps(gateway: Gateway, turn_id: str, wanted: str) -> tuple[StepRetry, ...]:
    with Operator(gateway.settings, gateway.brains) as operator:
        tried = [operator.retry(turn_id, step) for step in operator.given_up(turn_id, wanted)]
    return tuple(StepRetry(step=again.name, outcome=again.word, error=again.error) for again in tried)
