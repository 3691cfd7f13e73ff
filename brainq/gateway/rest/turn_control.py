"""Control of turns: input, cancellation, holds, approvals, results from outside, and retries of finalizer steps."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query
from pydantic import Field, JsonValue

from brainq.app.access import Caller, Verb
from brainq.client.checks import MAX_COMMENT_CHARS, MAX_HOLD_S, MAX_REASON_CHARS
from brainq.client.operator import Operator
from brainq.client.options import Cancelled
from brainq.contracts.call import parse_outside_token
from brainq.contracts.file import MAX_FILES, read_files
from brainq.contracts.ids import split_call_id
from brainq.contracts.people import DEFAULT_HOLD_S, Approval, HoldPolicy, Receipt, StandingHold
from brainq.contracts.turn import MAX_MESSAGE_CHARS
from brainq.engine.tools.results import WithFiles
from brainq.errors import TokenRefused
from brainq.gateway.edge.access import RequestDep, TurnDep
from brainq.gateway.edge.authentication import LOCAL_CALLER
from brainq.gateway.edge.problems import problem_responses
from brainq.gateway.edge.request import CALL_ID, ID, TURN_ID, Gateway, GatewayRequest
from brainq.gateway.rest import bodies

ByField = Field("", max_length=90, description="The person who decides, recorded after the caller's name.")
ArgsHashField = Field(
    None, max_length=200, description="The hash of the arguments that were shown; refused if they have changed."
)
router = APIRouter(prefix="/v1/turns/{turn_id}", tags=["turns"])
approvals_router = APIRouter(prefix="/v1", tags=["approvals"])
PathId = Annotated[str, Path(pattern=ID)]
CallPath = Annotated[
    str,
    Path(
        pattern="^([A-Za-z0-9][A-Za-z0-9_-]{2,63}[-.])?c[0-9]{1,9}-[0-9]{1,9}$",
        description="The call's id in the turn's events, or its `id` over all turns.",
    ),
]


class InputBody(bodies.Body):
    """An input for a turn. The text may be empty if there is `readiness` or an attachment."""

    text: str = Field(default="", max_length=MAX_MESSAGE_CHARS)
    client_message_id: str | None = Field(default=None, pattern=ID)
    readiness: bool | None = None
    expected_turn_id: str | None = Field(default=None, pattern=TURN_ID)
    attachments: list[bodies.FileBody] = Field(default=[], max_length=MAX_FILES)


class ReasonBody(bodies.Body):
    reason: str = Field(default="", max_length=MAX_REASON_CHARS)


class HoldBody(bodies.Body):
    """A hold's or readiness flag's reason, its lifetime in seconds, and what happens when it expires."""

    reason: str = Field(default="", max_length=MAX_REASON_CHARS)
    expires_in_s: float = Field(default=DEFAULT_HOLD_S, gt=0, le=MAX_HOLD_S, allow_inf_nan=False)
    on_expiry: HoldPolicy = "deny"


class HoldList(bodies.Answer):
    holds: tuple[StandingHold, ...]


class PlacedHold(bodies.Answer):
    """A hold or readiness flag. Its id is needed to release it."""

    id: str
    session_id: str
    turn_id: str | None = None


class ReleaseAnswer(bodies.Answer):
    """The outcome. `released` is false if the hold was released or had expired before."""

    released: bool


class ApprovalList(bodies.Answer):
    approvals: tuple[Approval, ...]


class ApprovalPage(ApprovalList, bodies.ListPage):
    """Approvals, newest first."""

    next: bodies.NextName = None


class ApproveBody(bodies.Body):
    """An approval of a call."""

    by: str = ByField
    args_hash: str | None = ArgsHashField


class DenyBody(bodies.Body):
    """A denial of a call."""

    by: str = ByField
    reason: str = Field(default="", max_length=MAX_COMMENT_CHARS, description="The model reads it.")


class EditBody(bodies.Body):
    """An approval of a call with other arguments."""

    by: str = ByField
    args_hash: str | None = ArgsHashField
    arguments: dict[str, JsonValue] = Field(description="They replace the model's arguments.")


class OutsideResult(bodies.Body):
    """The result that a call waits for, and its files. `partial` is true if the result is incomplete."""

    result: JsonValue
    files: list[bodies.FileBody] = Field(default=[], max_length=MAX_FILES)
    partial: bool = False


class OutsideError(bodies.Body):
    """The reason why there is no result. The model reads it."""

    error: str = Field(min_length=1, max_length=2_000)


class ResultReceipt(bodies.Answer):
    """The fate of a result. `settled`: the call has it; `early`: the call gets it once its tool returns; `late`: the
    call had already ended."""

    taken: Literal["settled", "early", "late"]


class CancelAnswer(bodies.Answer):
    """The effect of a cancel. `cancelled`: the turn had not begun; `requested`: it will stop; `ended`: it had ended."""

    cancelled: Cancelled


class RetryBody(bodies.Body):
    """A selection of dead finalizer steps."""

    step: str = Field("", max_length=300, description="A step, `judge:NAME` or `judges`; empty for all dead steps.")


class StepRetry(bodies.Answer):
    """The outcome of one step. `taken`: a worker is running it."""

    step: str
    outcome: Literal["done", "failed", "taken"]
    error: str


class RetryAnswer(bodies.Answer):
    turn_id: str
    steps: tuple[StepRetry, ...]


def result_with_files(body: OutsideResult) -> object:
    """Return the result as the client accepts it. Raises InvalidInput for an invalid file."""
    if not body.files:
        return body.result
    return WithFiles(body.result, read_files("files", [file.model_dump() for file in body.files]))


@router.post("/input", responses=problem_responses(409))
async def steer(handle: TurnDep, request: RequestDep, body: InputBody) -> Receipt:
    """Send input into the turn. The receipt is `accepted`; read it again later to see what became of the input.

    If the turn has ended, the input becomes a turn of its own, so this also needs the verb `submit`.
    """
    request.require_verb(Verb.SUBMIT)
    return await handle.steer(**body.model_dump())


@router.get("/input/{client_message_id}")
async def receipt(handle: TurnDep, client_message_id: PathId) -> Receipt:
    """Show which step consumed an input of the turn's session, or to which turn it was bounced."""
    return await handle.receipt(client_message_id)


@router.post("/calls/{call_id}/result", responses=problem_responses(409))
async def call_result(handle: TurnDep, call_id: CallPath, body: OutsideResult | OutsideError) -> ResultReceipt:
    """Give a call of one of the turn's `client_tools` its result, or the reason why it has none. Accepted once."""
    if isinstance(body, OutsideResult):
        return ResultReceipt(taken=await handle.give_result(call_id, result_with_files(body), partial=body.partial))
    return ResultReceipt(taken=await handle.give_error(call_id, body.error))


@router.post("/cancel")
async def cancel(handle: TurnDep, body: ReasonBody | None = None) -> CancelAnswer:
    """Request that the turn be cancelled."""
    return CancelAnswer(cancelled=await handle.cancel(body.reason if body else ""))


@router.get("/holds")
async def holds(handle: TurnDep) -> HoldList:
    """List the holds on the turn, including its readiness flag."""
    return HoldList(holds=await handle.holds())


@router.post("/holds", status_code=201)
async def hold(handle: TurnDep, body: HoldBody | None = None) -> PlacedHold:
    """Keep calls that may change something from starting until the hold is released."""
    placed = await handle.hold(**(body or HoldBody()).model_dump())
    return PlacedHold(id=placed.id, session_id=placed.session_id, turn_id=placed.turn_id)


@router.delete("/holds/{hold_id}")
async def release(handle: TurnDep, hold_id: PathId) -> ReleaseAnswer:
    """Release a hold."""
    return ReleaseAnswer(released=await handle.release(hold_id))


@router.get("/approvals")
async def approvals(handle: TurnDep) -> ApprovalList:
    """List all approvals of the turn's calls."""
    return ApprovalList(approvals=await handle.approvals())


@router.post("/finalizer/retry", responses=problem_responses(410))
async def retry(handle: TurnDep, request: RequestDep, body: RetryBody | None = None) -> RetryAnswer:
    """Run dead finalizer steps again in this process. The answer has the outcome of each."""
    wanted = body.step if body else ""
    loop = asyncio.get_running_loop()
    with request.stream_slot():
        steps = await loop.run_in_executor(
            request.gateway.long_work, _retry_steps, request.gateway, handle.turn_id, wanted
        )
    return RetryAnswer(turn_id=handle.turn_id, steps=steps)


def _retry_steps(gateway: Gateway, turn_id: str, wanted: str) -> tuple[StepRetry, ...]:
    with Operator(gateway.settings, gateway.brains) as operator:
        tried = [operator.retry(turn_id, step) for step in operator.given_up(turn_id, wanted)]
    return tuple(StepRetry(step=again.name, outcome=again.word, error=again.error) for again in tried)


async def own_approval(approval_id: Annotated[str, Path(pattern=CALL_ID)], request: RequestDep) -> Approval:
    """Return one of the caller's own approvals. Raises NotFound for any other.

    Its turn is looked up first, because that takes equally long for another tenant's approval.
    """
    turn_id, _ = split_call_id(approval_id)
    await request.own_turn(turn_id)
    return await request.client.approval(approval_id)


ApprovalDep = Annotated[Approval, Depends(own_approval)]


@approvals_router.get("/approvals", name="approvals")
async def list_approvals(
    request: RequestDep,
    session: Annotated[str | None, Query(pattern=ID)] = None,
    state: Annotated[str, Query(pattern="^(pending|approved|denied|expired|void|all)$")] = "pending",
    limit: bodies.Limit = bodies.DEFAULT_LIST_PAGE,
    after: Annotated[str | None, Query(max_length=200, description=bodies.AFTER)] = None,
) -> ApprovalPage:
    """List approvals of calls, newest first."""
    if session is not None:
        request.require_session(session)
    found = await request.client.approvals(session, state, limit, request.caller.prefixes, after=after)
    return ApprovalPage(approvals=found, **bodies.page_end(found, limit, lambda approval: approval.id))


@approvals_router.get("/approvals/{approval_id}")
async def approval(found: ApprovalDep) -> Approval:
    """Show an approval."""
    return found


@approvals_router.post("/approvals/{approval_id}/approve", responses=problem_responses(409))
async def approve(found: ApprovalDep, request: RequestDep, body: ApproveBody | None = None) -> Approval:
    """Approve the call, so that it runs. Idempotent."""
    return await decide(request, found.id, approves=True, **(body or ApproveBody()).model_dump())


@approvals_router.post("/approvals/{approval_id}/deny", responses=problem_responses(409))
async def deny(found: ApprovalDep, request: RequestDep, body: DenyBody | None = None) -> Approval:
    """Deny the call; its turn continues."""
    return await decide(request, found.id, approves=False, **(body or DenyBody()).model_dump())


@approvals_router.post("/approvals/{approval_id}/edit", responses=problem_responses(409))
async def edit(found: ApprovalDep, request: RequestDep, body: EditBody) -> Approval:
    """Approve the call with other arguments, which must fit the tool's schema."""
    return await decide(request, found.id, approves=True, **body.model_dump())


@approvals_router.post("/outside/{token:path}")
async def outside(
    token: Annotated[str, Path(min_length=1, max_length=500)], request: RequestDep, body: OutsideResult | OutsideError
) -> ResultReceipt:
    """Give the result that a call waits for, or the reason why there is none. Accepted once."""
    # A token made by brainq names its session. A tool's own token does not, so it needs access to all sessions.
    ref = parse_outside_token(token)
    if not request.may_access(None if ref is None else ref.session_id):
        raise TokenRefused("no call of this caller waits for this token")
    if isinstance(body, OutsideResult):
        taken = await request.client.complete_call(token, result_with_files(body), partial=body.partial)
    else:
        taken = await request.client.fail_call(token, body.error)
    return ResultReceipt(taken=taken)


def decider_name(caller: Caller, person: str) -> str:
    """Return the name to record for a decision: the caller, and the person that it names."""
    if caller is LOCAL_CALLER:
        return person
    return f"{caller.name}: {person}" if person else caller.name


async def decide(
    request: GatewayRequest,
    approval_id: str,
    *,
    approves: bool,
    by: str = "",
    reason: str = "",
    arguments: dict[str, Any] | None = None,
    args_hash: str | None = None,
) -> Approval:
    """Approve or deny a call in the name of the caller and of the person `by`. `arguments` replace the model's."""
    client, decided_by = request.client, decider_name(request.caller, by)
    if not approves:
        return await client.deny(approval_id, reason, by=decided_by)
    if arguments is not None:
        return await client.edit(approval_id, arguments, by=decided_by, args_hash=args_hash)
    return await client.approve(approval_id, by=decided_by, args_hash=args_hash)
