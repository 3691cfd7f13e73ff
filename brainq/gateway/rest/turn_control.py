"""Control of turns: input, cancel, holds, approvals, results from outside, and a retry of dead finalizer
steps.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query
from pydantic import Field, JsonValue

from brainq.access import Caller, Verb
from brainq.cells.cells import cells_away
from brainq.client.checks import MAX_COMMENT_CHARS, MAX_HOLD_S, MAX_REASON_CHARS
from brainq.client.options import Cancelled
from brainq.contracts.call import parse_outside_token
from brainq.contracts.file import MAX_FILES, read_files
from brainq.contracts.ids import split_call_id
from brainq.contracts.people import DEFAULT_HOLD_S, Approval, HoldPolicy, Receipt, StandingHold
from brainq.contracts.turn import MAX_MESSAGE_CHARS
from brainq.errors import TokenRefused
from brainq.gateway.edge.access import RequestDep, TurnDep
from brainq.gateway.edge.authentication import LOCAL_CALLER
from brainq.gateway.edge.problems import problem_responses
from brainq.gateway.edge.request import CALL_ID, ID, TURN_ID, Gateway, GatewayRequest
from brainq.gateway.rest.bodies import DEFAULT_LIST_PAGE, Answer, Body, FileBody, Limit, ListPage
from brainq.operator import Operator
from brainq.tools.results import WithFiles

MAX_BY_CHARS = 90  # with the caller's name before it
router = APIRouter(prefix="/v1/turns/{turn_id}", tags=["turns"])
approvals_router = APIRouter(prefix="/v1", tags=["approvals"])
PathId = Annotated[str, Path(pattern=ID)]
CallPath = Annotated[
    str,
    Path(
        pattern="^([A-Za-z0-9][A-Za-z0-9_-]{2,63}[-.])?c[0-9]{1,9}-[0-9]{1,9}$",
        description="As the turn's events have it, or its `id` over all turns.",
    ),
]


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


class ApprovalPage(ApprovalList, ListPage):
    """`next`: give it as `after` for the page after this one; None on the last."""

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
    """The result that a call waits for, and files beside it; `partial`: it is incomplete."""

    result: JsonValue
    files: list[FileBody] = Field(default=[], max_length=MAX_FILES)
    partial: bool = False


class OutsideError(Body):
    """There is no result; the model reads why."""

    error: str = Field(min_length=1, max_length=2_000)


class ResultReceipt(Answer):
    """`settled`: the call has it; `early`: it will, once its tool has returned; `late`: the call has ended."""

    taken: Literal["settled", "early", "late"]


class CancelAnswer(Answer):
    """`cancelled`: it had not begun; `requested`: it will stop; `ended`: it was over before."""

    cancelled: Cancelled


class RetryBody(Body):
    """A step, `judge:NAME`, `judges`; empty: all that is dead."""

    step: str = Field(default="", max_length=300)


class StepRetry(Answer):
    """`taken`: a worker has it at this moment."""

    step: str
    outcome: Literal["done", "failed", "taken"]
    error: str


class RetryAnswer(Answer):
    turn_id: str
    steps: tuple[StepRetry, ...]


def result_with_files(body: OutsideResult) -> object:
    """The result as the client takes it. Raises InvalidInput for an invalid file."""
    if not body.files:
        return body.result
    return WithFiles(body.result, read_files("files", [file.model_dump() for file in body.files]))


@router.post("/input", responses=problem_responses(409))
async def steer(handle: TurnDep, request: RequestDep, body: InputBody) -> Receipt:
    """Send input into the turn. The receipt is `accepted`; ask for it again to learn what became of the input.

    Of a turn that has ended it becomes a turn of its own: this needs the verb `submit`, too.
    """
    request.require_verb(Verb.SUBMIT)
    return await handle.steer(**body.model_dump())


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
    placed = await handle.hold(**(body or HoldBody()).model_dump())
    return PlacedHold(id=placed.id, session_id=placed.session_id, turn_id=placed.turn_id)


@router.delete("/holds/{hold_id}")
async def release(handle: TurnDep, hold_id: PathId) -> ReleaseAnswer:
    """Release a hold."""
    return ReleaseAnswer(released=await handle.release(hold_id))


@router.get("/approvals")
async def approvals(handle: TurnDep) -> ApprovalList:
    """All approvals of the turn's calls."""
    return ApprovalList(approvals=await handle.approvals())


@router.post("/finalizer/retry", responses=problem_responses(410))
async def retry(handle: TurnDep, request: RequestDep, body: RetryBody | None = None) -> RetryAnswer:
    """Run dead finalizer steps again, in this process. The answer has the outcome of each."""
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
    """An approval of the caller's own. Its turn is looked up first: that takes equally long for another tenant's."""
    turn_id, _ = split_call_id(approval_id)
    await request.own_turn(turn_id)
    return await request.client.approval(approval_id)


ApprovalDep = Annotated[Approval, Depends(own_approval)]


@approvals_router.get("/approvals", name="approvals")
async def list_approvals(
    request: RequestDep,
    session: Annotated[str | None, Query(pattern=ID)] = None,
    state: Annotated[str, Query(pattern="^(pending|approved|denied|expired|void|all)$")] = "pending",
    limit: Limit = DEFAULT_LIST_PAGE,
    after: Annotated[
        str | None, Query(max_length=200, description="The `next` of the page at hand, its last approval.")
    ] = None,
) -> ApprovalPage:
    """Approvals of calls, the newest first."""
    if session is not None:
        request.require_session(session)
    found = await request.client.approvals(session, state, limit, request.caller.prefixes, after=after)
    following = found[-1].id if len(found) == limit else None
    return ApprovalPage(approvals=found, next=following, cells_away=cells_away(found))


@approvals_router.get("/approvals/{approval_id}")
async def approval(found: ApprovalDep) -> Approval:
    """One approval."""
    return found


@approvals_router.post("/approvals/{approval_id}/approve", responses=problem_responses(409))
async def approve(found: ApprovalDep, request: RequestDep, body: ApproveBody | None = None) -> Approval:
    """Let the call run. Doing it again changes nothing."""
    return await decide(request, found.id, approves=True, **(body or ApproveBody()).model_dump())


@approvals_router.post("/approvals/{approval_id}/deny", responses=problem_responses(409))
async def deny(found: ApprovalDep, request: RequestDep, body: DenyBody | None = None) -> Approval:
    """Refuse the call; its turn goes on."""
    return await decide(request, found.id, approves=False, **(body or DenyBody()).model_dump())


@approvals_router.post("/approvals/{approval_id}/edit", responses=problem_responses(409))
async def edit(found: ApprovalDep, request: RequestDep, body: EditBody) -> Approval:
    """Let the call run with other arguments, which have to fit the tool's schema."""
    return await decide(request, found.id, approves=True, **body.model_dump())


@approvals_router.post("/outside/{token:path}")
async def outside(
    token: Annotated[str, Path(min_length=1, max_length=500)], request: RequestDep, body: OutsideResult | OutsideError
) -> ResultReceipt:
    """Give the result that a call waits for, or report that there is none. It is accepted once."""
    # A token of brainq's names its session. A tool's own token does not, so it needs access to all sessions.
    ref = parse_outside_token(token)
    if not request.may_access(None if ref is None else ref.session_id):
        raise TokenRefused("no call of yours waits for this token")
    if isinstance(body, OutsideResult):
        taken = await request.client.complete_call(token, result_with_files(body), partial=body.partial)
    else:
        taken = await request.client.fail_call(token, body.error)
    return ResultReceipt(taken=taken)


def decider_name(caller: Caller, person: str) -> str:
    """The decider for the record: the caller, and the person that it names."""
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
    """Approve or deny a call in the caller's name, and that of the person `by`. `arguments` replace the model's."""
    client, decided_by = request.client, decider_name(request.caller, by)
    if not approves:
        return await client.deny(approval_id, reason, by=decided_by)
    if arguments is not None:
        return await client.edit(approval_id, arguments, by=decided_by, args_hash=args_hash)
    return await client.approve(approval_id, by=decided_by, args_hash=args_hash)
