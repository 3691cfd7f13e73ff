"""Sessions: their live and waiting turns, their history, and control of the live turn."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from brainq.app.access import Verb
from brainq.client.async_client import AsyncSession
from brainq.client.checks import MAX_REASON_CHARS
from brainq.contracts.history import HistoryTurn, ListedSession, WaitingTurn
from brainq.contracts.people import Receipt
from brainq.errors import NotFound
from brainq.gateway.edge.access import RequestDep
from brainq.gateway.edge.authentication import LOCAL_CALLER
from brainq.gateway.edge.problems import problem_responses
from brainq.gateway.edge.request import ID, TURN_ID
from brainq.gateway.rest import bodies
from brainq.gateway.rest.turn_control import HoldBody, InputBody, PlacedHold, ReasonBody, ReleaseAnswer
from brainq.gateway.rest.turns import hide_foreign_parent

router = APIRouter(prefix="/v1/sessions/{session_id}", tags=["sessions"])
list_router = APIRouter(tags=["sessions"])
TurnId = Annotated[str, Path(pattern=TURN_ID)]


class SessionPage(bodies.ListPage):
    """Sessions, the one with the newest turn first."""

    sessions: tuple[ListedSession, ...]
    next: bodies.NextName


class SessionStatus(bodies.Answer):
    """A session's live turn, its waiting turns, and its readiness flags that no turn has taken yet.

    why_paused   who paused the session, and why; null if it is not paused
    """

    session_id: str
    live: str | None
    waiting: tuple[WaitingTurn, ...]
    is_paused: bool
    why_paused: str | None
    flags: tuple[str, ...]


class HistoryPage(bodies.Answer):
    """Turns of a session, oldest first. The id of the first turn, given as `after`, selects the preceding page."""

    session_id: str
    turns: tuple[HistoryTurn, ...]


async def own_session(session_id: Annotated[str, Path(pattern=ID)], request: RequestDep) -> AsyncSession:
    """Return one of the caller's own sessions, which need not have a turn yet. Raises NotFound for any other."""
    request.require_session(session_id)
    return request.client.session(session_id)


SessionDep = Annotated[AsyncSession, Depends(own_session)]


@router.get("")
async def look(own: SessionDep) -> SessionStatus:
    """Show a session's state. 404 if the session has no turn and no flag."""
    why_paused = await own.why_paused()
    status = SessionStatus(
        session_id=own.session_id,
        live=await own.live(),
        waiting=await own.waiting(),
        is_paused=why_paused is not None,
        why_paused=why_paused,
        flags=await own.unread_flags(),
    )
    if not (status.live or status.waiting or status.is_paused or status.flags or await own.history(1)):
        raise NotFound("no turn, no flag")
    return status


@router.get("/history")
async def history(
    own: SessionDep,
    limit: bodies.Limit = bodies.DEFAULT_LIST_PAGE,
    after: Annotated[str | None, Query(pattern=TURN_ID, description="The first turn of the previous page.")] = None,
) -> HistoryPage:
    """List the session's newest turns, oldest first."""
    return HistoryPage(session_id=own.session_id, turns=await own.history(limit, after))


@router.post("/input", responses=problem_responses(409))
async def steer(own: SessionDep, request: RequestDep, body: InputBody) -> Receipt:
    """Send input into the live turn. If no turn is live, the input becomes a turn, which also needs `submit`."""
    request.require_verb(Verb.SUBMIT)
    return await own.steer(**body.model_dump())


@router.post("/pause")
async def pause(own: SessionDep, request: RequestDep, body: ReasonBody | None = None) -> bodies.ChangeAnswer:
    """Stop further turns from beginning; a live turn continues. `explain` of a waiting turn shows who paused the
    session, and why."""
    reason = body.reason if body else ""
    if request.caller is not LOCAL_CALLER:
        reason = f"{request.caller.name}: {reason}" if reason else f"by {request.caller.name}"
    return bodies.ChangeAnswer(changed=await own.pause(reason[:MAX_REASON_CHARS]))


@router.post("/resume")
async def resume(own: SessionDep) -> bodies.AffectedTurn:
    """Let turns begin again. The answer names the turn that became live."""
    return bodies.AffectedTurn(turn_id=await own.resume())


@router.post("/interrupt")
async def interrupt(own: SessionDep, body: ReasonBody | None = None) -> bodies.AffectedTurn:
    """Cancel the live turn, so that the next one begins. The answer names the cancelled turn."""
    return bodies.AffectedTurn(turn_id=await own.interrupt(body.reason if body else ""))


@router.delete("/waiting/{turn_id}")
async def drop(own: SessionDep, turn_id: TurnId) -> bodies.ChangeAnswer:
    """Cancel a turn that still waits. A live turn continues."""
    return bodies.ChangeAnswer(changed=await own.drop(turn_id))


@router.post("/flags", status_code=201)
async def flag(own: SessionDep, body: HoldBody | None = None) -> PlacedHold:
    """Add a readiness flag. It holds the session's next turn without a flag until the flag is released."""
    placed = await own.readiness(**(body or HoldBody()).model_dump())
    return PlacedHold(id=placed.id, session_id=placed.session_id)


@router.delete("/flags/{flag_id}")
async def ready(own: SessionDep, flag_id: Annotated[str, Path(pattern=ID)]) -> ReleaseAnswer:
    """Release a readiness flag. A turn that waits for it resumes. If no turn has it yet, the next turn will not be
    held."""
    return ReleaseAnswer(released=await own.flag(flag_id).release())


@router.post("/compact", status_code=202, responses=problem_responses(409))
async def compact(
    own: SessionDep, request: RequestDep, idempotency_key: bodies.IdempotencyKey = None
) -> bodies.SubmitAnswer:
    """Submit a turn that replaces the session's older messages with a summary."""
    with bodies.submit_key(request, own.session_id, idempotency_key) as key:
        handle = await own.compact(key)
    return bodies.SubmitAnswer(turn_id=handle.turn_id, session_id=handle.session_id, created=handle.created)


@list_router.get("/v1/sessions")
async def sessions(
    request: RequestDep,
    prefix: Annotated[str | None, Query(pattern=ID, description="Only sessions whose id begins with this.")] = None,
    limit: bodies.Limit = bodies.DEFAULT_LIST_PAGE,
    after: bodies.AfterTurn = None,
) -> SessionPage:
    """List the caller's own sessions that have a turn, the one with the newest turn first."""
    found = await request.client.sessions(prefix or "", limit, request.caller.prefixes, after=after)
    shown = tuple(one.model_copy(update={"last_turn": hide_foreign_parent(one.last_turn, request)}) for one in found)
    return SessionPage(sessions=shown, **bodies.page_end(found, limit, lambda listed: listed.last_turn.turn_id))
