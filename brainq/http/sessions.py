"""Sessions: what is live and what waits, what was said, and talking to whatever is live."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from brainq.access import Verb
from brainq.client.async_session import AsyncSession
from brainq.client.checks import MAX_REASON_CHARS
from brainq.contracts.mailbox import Receipt
from brainq.errors import NotFound
from brainq.http.bodies.base import Changed, Touched
from brainq.http.bodies.people import HoldBody, InputBody, Placed, ReasonBody, Released
from brainq.http.bodies.sessions import History, SessionSeen, Waiting
from brainq.http.bodies.submit import Submitted
from brainq.http.gateway import ID, TURN_ID, By, Here
from brainq.http.paging import LISTED, Limit
from brainq.http.problems import documented
from brainq.http.request_keys import Key, submitting
from brainq.http.who import LOCAL

router = APIRouter(prefix="/v1/sessions/{session_id}", tags=["sessions"])


async def session(session_id: Annotated[str, Path(pattern=ID)], here: Here, by: By) -> AsyncSession:
    """A session of the caller's own, which need not have a turn yet."""
    by.require(session_id)
    return here.client.session(session_id)


Own = Annotated[AsyncSession, Depends(session)]
TurnId = Annotated[str, Path(pattern=TURN_ID)]


@router.get("")
async def look(own: Own) -> SessionSeen:
    """How a session stands. 404 for one that nothing was ever sent to."""
    why_paused = await own.why_paused()
    seen = SessionSeen(
        session_id=own.session_id,
        live=await own.live(),
        waiting=tuple(Waiting(**asdict(turn)) for turn in await own.waiting()),
        is_paused=why_paused is not None,
        why_paused=why_paused,
        flags=await own.unread_flags(),
    )
    if not (seen.live or seen.waiting or seen.is_paused or seen.flags or await own.history(1)):
        raise NotFound("no turn, no flag")
    return seen


@router.get("/history")
async def history(
    own: Own,
    limit: Limit = LISTED,
    after: Annotated[
        str | None, Query(pattern=TURN_ID, description="The first turn of the page at hand.")
    ] = None,
) -> History:
    """The session's newest turns, the oldest of them first."""
    return History(session_id=own.session_id, turns=await own.history(limit, after))


@router.post("/input", responses=documented(409))
async def steer(own: Own, by: By, body: InputBody) -> Receipt:
    """Send input into whatever turn is live. When none is, it becomes a turn: this needs the verb `submit`, too."""
    by.require_verb(Verb.SUBMIT)
    return await own.steer(
        body.text,
        client_message_id=body.client_message_id,
        readiness=body.readiness,
        expected_turn_id=body.expected_turn_id,
        attachments=[file.model_dump() for file in body.attachments],
    )


@router.post("/pause")
async def pause(own: Own, by: By, body: ReasonBody | None = None) -> Changed:
    """Let no further turn begin; a live one goes on. The `explain` of one that waits says who paused it, and why."""
    reason = body.reason if body else ""
    if by.caller is not LOCAL:
        reason = f"{by.caller.name}: {reason}" if reason else f"by {by.caller.name}"
    return Changed(changed=await own.pause(reason[:MAX_REASON_CHARS]))


@router.post("/resume")
async def resume(own: Own) -> Touched:
    """Let turns begin again; the answer names the one that became live by it."""
    return Touched(turn_id=await own.resume())


@router.post("/interrupt")
async def interrupt(own: Own, body: ReasonBody | None = None) -> Touched:
    """Cancel the live turn; the next one begins. The answer names the one that was cancelled."""
    return Touched(turn_id=await own.interrupt(body.reason if body else ""))


@router.delete("/waiting/{turn_id}")
async def drop(own: Own, turn_id: TurnId) -> Changed:
    """Cancel a turn that still waits; a live one is left alone."""
    return Changed(changed=await own.drop(turn_id))


@router.post("/flags", status_code=201)
async def flag(own: Own, body: HoldBody | None = None) -> Placed:
    """Add a readiness flag: the next turn that has none is held until it is released."""
    wanted = body or HoldBody()
    placed = await own.readiness(wanted.reason, expires_in_s=wanted.expires_in_s, on_expiry=wanted.on_expiry)
    return Placed(id=placed.id, session_id=placed.session_id)


@router.delete("/flags/{flag_id}")
async def ready(own: Own, flag_id: Annotated[str, Path(pattern=ID)]) -> Released:
    """Say that all is ready: a turn that waits for it goes on, and one to come does not wait at all."""
    return Released(released=await own.flag(flag_id).release())


@router.post("/compact", status_code=202, responses=documented(409))
async def compact(own: Own, by: By, idempotency_key: Key = None) -> Submitted:
    """Submit a turn that replaces the session's older messages by a summary."""
    with submitting(by, own.session_id, idempotency_key) as key:
        handle = await own.compact(key)
    return Submitted(turn_id=handle.turn_id, session_id=handle.session_id, created=handle.created)
