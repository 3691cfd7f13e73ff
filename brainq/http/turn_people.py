"""Talking to a turn: input, cancel, holds, and the finalizer steps that were given up."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path

from brainq.access import Verb
from brainq.contracts.mailbox import Receipt
from brainq.http.bodies.people import (
    Approvals,
    HoldBody,
    Holds,
    InputBody,
    OutsideError,
    OutsideResult,
    Placed,
    ReasonBody,
    Released,
    TakenAnswer,
    result_of,
)
from brainq.http.bodies.turns import CancelAnswer, RetriedStep, RetryAnswer, RetryBody
from brainq.http.gateway import ID, By, Gateway, Here, Turn
from brainq.http.problems import documented
from brainq.operator.operator import Operator

router = APIRouter(prefix="/v1/turns/{turn_id}", tags=["turns"])

Id = Annotated[str, Path(pattern=ID)]
OwnCall = Annotated[
    str,
    Path(
        pattern="^([A-Za-z0-9][A-Za-z0-9_-]{2,63}[-.])?c[0-9]{1,9}-[0-9]{1,9}$",
        description="As the turn's events have it, or its `id` over all turns.",
    ),
]


@router.post("/input", responses=documented(409))
async def steer(handle: Turn, by: By, body: InputBody) -> Receipt:
    """Send input into the turn. The receipt is `accepted`; ask for it again to learn what became of the input.

    Of a turn that has ended it becomes a turn of its own: this needs the verb `submit`, too.
    """
    by.require_verb(Verb.SUBMIT)
    return await handle.steer(
        body.text,
        client_message_id=body.client_message_id,
        readiness=body.readiness,
        expected_turn_id=body.expected_turn_id,
        attachments=[file.model_dump() for file in body.attachments],
    )


@router.get("/input/{client_message_id}")
async def receipt(handle: Turn, client_message_id: Id) -> Receipt:
    """What became of an input of the turn's session: consumed by which step, or bounced to which turn."""
    return await handle.receipt(client_message_id)


@router.post("/calls/{call_id}/result", responses=documented(409))
async def call_result(handle: Turn, call_id: OwnCall, body: OutsideResult | OutsideError) -> TakenAnswer:
    """Give a call of one of the turn's `client_tools` its result, or say that there is none. It is taken once."""
    if isinstance(body, OutsideResult):
        return TakenAnswer(taken=await handle.give_result(call_id, result_of(body), partial=body.partial))
    return TakenAnswer(taken=await handle.give_error(call_id, body.error))


@router.post("/cancel")
async def cancel(handle: Turn, body: ReasonBody | None = None) -> CancelAnswer:
    """Ask for the turn to be cancelled."""
    return CancelAnswer(cancelled=await handle.cancel(body.reason if body else ""))


@router.get("/holds")
async def holds(handle: Turn) -> Holds:
    """The holds that stand on the turn, its readiness flag among them."""
    return Holds(holds=await handle.holds())


@router.post("/holds", status_code=201)
async def hold(handle: Turn, body: HoldBody | None = None) -> Placed:
    """Keep calls that change something from starting until the hold is released."""
    wanted = body or HoldBody()
    placed = await handle.hold(wanted.reason, expires_in_s=wanted.expires_in_s, on_expiry=wanted.on_expiry)
    return Placed(id=placed.id, session_id=placed.session_id, turn_id=placed.turn_id)


@router.delete("/holds/{hold_id}")
async def release(handle: Turn, hold_id: Id) -> Released:
    """Release a hold."""
    return Released(released=await handle.release(hold_id))


@router.get("/approvals")
async def approvals(handle: Turn) -> Approvals:
    """Every call of the turn that people are, or were, asked about."""
    return Approvals(approvals=await handle.approvals())


@router.post("/finalizer/retry", responses=documented(410))
async def retry(handle: Turn, here: Here, by: By, body: RetryBody | None = None) -> RetryAnswer:
    """Run again what the finalizer gave up, in this process; the answer says how each step ended."""
    wanted = body.step if body else ""
    loop = asyncio.get_running_loop()
    with here.streams.enter(by.caller.counted_as):
        steps = await loop.run_in_executor(here.long_work, _retried, here, handle.turn_id, wanted)
    return RetryAnswer(turn_id=handle.turn_id, steps=steps)


def _retried(here: Gateway, turn_id: str, wanted: str) -> tuple[RetriedStep, ...]:
    with Operator(here.settings, here.brains) as operator:
        tried = [operator.retry(turn_id, step) for step in operator.given_up(turn_id, wanted)]
    return tuple(RetriedStep(step=again.name, outcome=again.word, error=again.error) for again in tried)
