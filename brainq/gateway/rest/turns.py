"""Turns: submit and list them, and read a turn's status, records and result."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Response
from pydantic import AwareDatetime, BaseModel, Field, JsonValue

from brainq.app.access import Verb
from brainq.client.async_handle import AsyncTurnHandle
from brainq.client.lists import MAX_FILTER_VALUES, MAX_SEARCH_CHARS, read_metadata_pairs
from brainq.contracts.descriptions import TURN_FILTERS
from brainq.contracts.evaluation import RuntimeDecisionRecord, Strategy
from brainq.contracts.event import TurnTimeline
from brainq.contracts.history import LIST_STATES, ListedTurn, Sort, StartedTurn, TurnCall
from brainq.contracts.ids import MAX_ID_LENGTH
from brainq.contracts.message import Message
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import ParentCall, TurnKind, TurnResult
from brainq.contracts.view import TurnSnapshot
from brainq.errors import TurnRejected, Unreachable
from brainq.gateway.edge.access import RequestDep, TurnDep
from brainq.gateway.edge.problems import RequestRejected, problem_responses
from brainq.gateway.edge.request import CALL_ID, ID, TURN_ID, GatewayRequest, HttpRequest
from brainq.gateway.rest import bodies
from brainq.gateway.rest.event_stream import requested_wait_s, result_if_ready, wait_for_result
from brainq.runtime.processes.resources import is_shortage

router = APIRouter(tags=["turns"])
Prefer = Annotated[str, Header(description="`wait=n`: answer with the result if it is ready within n seconds.")]
FilterText = Annotated[str, Field(max_length=MAX_SEARCH_CHARS)]
BINARY_SCHEMA = {"type": "string", "format": "binary"}


class TurnAnswer(bodies.Answer):
    """An answer about one turn."""

    turn_id: str
    session_id: str


class TurnStatus(TurnAnswer):
    """A turn's state."""

    state: str = Field(
        description="`queued`, `active`, `parked` or `closing`; an ending; `rejected`; or `accepted` while the turn is "
        "only in SQL."
    )
    snapshot: TurnSnapshot | None = Field(None, description="Null once an ended turn has expired in Redis.")


class TurnExplanation(TurnAnswer):
    """A sentence about what happens next to a turn, and why."""

    next: str


class TurnDecision(TurnAnswer):
    """A turn's decision record; null until the finalizer has written it."""

    decision: RuntimeDecisionRecord | None


class SubmittedRequest(TurnAnswer):
    """The message and the options that were submitted."""

    user_message: str = Field(description="Empty if content is not stored.")
    kind: TurnKind
    brain: str | None
    model: str | None
    metadata: dict[str, JsonValue] | None
    prompt_tags: tuple[str, ...]
    attachments: int = Field(description="The number of files.")
    parent: ParentCall | None = Field(
        description="The call that started the turn, if it belongs to one of the caller's sessions."
    )


class ChildTurns(TurnAnswer):
    """The turns that this turn's calls started, in the order of the calls."""

    children: tuple[StartedTurn, ...]


class TranscriptPage(TurnAnswer):
    """A page of a turn's messages, in order."""

    messages: tuple[Message, ...]


class CallPage(TurnAnswer):
    """A page of a turn's calls, in the model's order."""

    calls: tuple[TurnCall, ...]


class TurnPage(bodies.ListPage):
    """Turns, newest first."""

    turns: tuple[ListedTurn, ...]
    next: bodies.NextName


ACCEPTED_RESPONSE: dict[int | str, dict[str, Any]] = {
    202: {
        "model": TurnStatus,
        "description": "The turn has not ended.",
        "headers": {"Location": {"description": "The turn.", "schema": {"type": "string"}}},
    }
}

SUBMIT_RESPONSES: dict[int | str, dict[str, Any]] = {
    202: {**ACCEPTED_RESPONSE[202], "model": bodies.SubmitAnswer, "description": "The turn is accepted."},
    200: {"model": TurnResult, "description": "The turn's result, if `Prefer: wait=n` was sent."},
}


@router.post(
    "/v1/turns", status_code=202, response_model=None, responses={**SUBMIT_RESPONSES, **problem_responses(409)}
)
async def submit(
    body: bodies.SubmitBody, request: RequestDep, idempotency_key: bodies.IdempotencyKey = None, prefer: Prefer = ""
) -> Response:
    """Submit a turn. With `Prefer: wait=n` the answer is its result if that is ready in time.

    An `on_busy` that affects a live turn also needs the verb `steer`; waiting for the result needs `read`; `model`,
    `provider`, `system_prompt`, `skill_context`, `cwd`, `limits` and `options` need `configure`.
    """
    bodies.require_may_submit(request, body.session_id, body)
    if requested_wait_s(prefer, request.gateway.settings.http_wait_s):
        request.require_verb(Verb.READ)
    with bodies.submit_key(request, body.session_id, idempotency_key) as key:
        handle = await bodies.submit_turn(request.gateway, body, key)
    accepted = bodies.SubmitAnswer(
        turn_id=handle.turn_id, session_id=handle.session_id, created=handle.created, receipt=handle.joined
    )
    try:
        return await _result_or_status(accepted, 202, handle, request, prefer)
    except Exception as failure:
        if not (isinstance(failure, RequestRejected | Unreachable) or is_shortage(failure)):
            raise
        # The wait is impossible at present, but the turn is accepted, and its producer must learn that.
        return _json_response(accepted, 202, _location(handle))


@bodies.described(TURN_FILTERS)
class TurnQuery(BaseModel):
    """Filters of the list of turns, all of which must match, and the page."""

    session: str | None = Field(None, pattern=ID)
    state: str | None = Field(None, pattern=f"^({'|'.join(LIST_STATES)})$")
    brain: str | None = Field(None, pattern=ID)
    ending: Ending | None = None
    stop_reason: StopReason | None = None
    failing: bool = False
    unknown: bool = False
    min_cost_usd: float | None = Field(None, ge=0, allow_inf_nan=False)
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None
    text: str = Field("", max_length=MAX_ID_LENGTH)
    strategy: Strategy | None = None
    search: str = Field("", max_length=MAX_SEARCH_CHARS)
    metadata: list[FilterText] = Field([], max_length=MAX_FILTER_VALUES)
    prompt_tags: list[FilterText] = Field([], max_length=MAX_FILTER_VALUES)
    sort: Sort = "newest"
    limit: int = Field(bodies.DEFAULT_LIST_PAGE, ge=1, le=bodies.MAX_PAGE)
    after: str | None = Field(None, pattern=TURN_ID, description=bodies.AFTER)


@router.get("/v1/turns")
async def turns(request: RequestDep, query: Annotated[TurnQuery, Query()]) -> TurnPage:
    """List the caller's own turns, newest first."""
    options: dict[str, Any] = {**dict(query), "metadata": read_metadata_pairs("metadata", query.metadata)}
    found = await request.client.turns(**options, session_prefixes=request.caller.prefixes)
    shown = tuple(hide_foreign_parent(turn, request) for turn in found)
    return TurnPage(turns=shown, **bodies.page_end(found, query.limit, lambda turn: turn.turn_id))


def hide_foreign_parent(turn: ListedTurn, request: GatewayRequest) -> ListedTurn:
    """Remove the turn's parent if that is in a session which the caller must not see."""
    if turn.parent is None or request.may_access(turn.parent.session_id):
        return turn
    return turn.model_copy(update={"parent": None})


@router.get("/v1/turns/{turn_id}")
async def look(handle: TurnDep) -> TurnStatus:
    """Show a turn's state."""
    return await turn_status(handle)


@router.get("/v1/turns/{turn_id}/request")
async def requested(handle: TurnDep, request: RequestDep) -> SubmittedRequest:
    """Show what was submitted, and which call started the turn."""
    submitted = await handle.request()
    parent = submitted.parent if submitted.parent and request.may_access(submitted.parent.session_id) else None
    names = ("turn_id", "session_id", "user_message", "kind", "brain", "model", "metadata", "prompt_tags")
    fields = {name: getattr(submitted, name) for name in names}
    return SubmittedRequest(**fields, attachments=len(submitted.attachments), parent=parent)


@router.get("/v1/turns/{turn_id}/children")
async def children(handle: TurnDep, request: RequestDep) -> ChildTurns:
    """List the turns that the turn's calls started in the caller's own sessions."""
    found = tuple(child for child in await handle.children() if request.may_access(child.session_id))
    return ChildTurns(turn_id=handle.turn_id, session_id=handle.session_id, children=found)


@router.get("/v1/turns/{turn_id}/explain")
async def explain(handle: TurnDep) -> TurnExplanation:
    """Explain what happens next to the turn: what it waits for, and which worker has it."""
    return TurnExplanation(turn_id=handle.turn_id, session_id=handle.session_id, next=await handle.explain())


@router.get(
    "/v1/turns/{turn_id}/result",
    response_model=None,
    responses={
        **ACCEPTED_RESPONSE,
        200: {"model": TurnResult, "description": "The turn's result."},
        **problem_responses(409),
    },
)
async def result(handle: TurnDep, request: RequestDep, prefer: Prefer = "") -> Response:
    """Return the result of a turn, however it ended. 202 while there is none; `Prefer: wait=n` waits for it."""
    found = await result_if_ready(handle)
    if found is not None:
        return _json_response(found)
    return await _result_or_status(await turn_status(handle), 202, handle, request, prefer)


@router.get("/v1/turns/{turn_id}/timeline")
async def timeline(handle: TurnDep) -> TurnTimeline:
    """Return the turn as bars over time. The turn's events after `seq` continue it as long as they are kept."""
    return await handle.timeline()


@router.get("/v1/turns/{turn_id}/decision")
async def decision(handle: TurnDep) -> TurnDecision:
    """Return the turn's decision record: strategy, tools, hashes of context and prompt. Null until it is written."""
    return TurnDecision(turn_id=handle.turn_id, session_id=handle.session_id, decision=await handle.decision())


@router.get("/v1/turns/{turn_id}/transcript", responses=problem_responses(410))
async def transcript(
    handle: TurnDep,
    limit: bodies.Limit = bodies.DEFAULT_PAGE,
    after: Annotated[int, Query(ge=0, le=bodies.MAX_NUMBER, description="The number of messages to skip.")] = 0,
) -> TranscriptPage:
    """List the turn's messages: the user's, the model's with its calls, and the results of these."""
    messages = await handle.transcript(limit, after)
    return TranscriptPage(turn_id=handle.turn_id, session_id=handle.session_id, messages=messages)


@router.get(
    "/v1/turns/{turn_id}/files/{sha256}",
    response_class=Response,
    responses={200: {"description": "The file's bytes.", "content": {"*/*": {"schema": BINARY_SCHEMA}}}},
)
async def file(handle: TurnDep, sha256: Annotated[str, Path(pattern="^[0-9a-f]{64}$")]) -> Response:
    """Return the bytes of an attachment of one of the turn's messages, by its hash."""
    return bodies.file_response(await handle.file(sha256))


@router.get("/v1/turns/{turn_id}/calls")
async def calls(
    handle: TurnDep,
    limit: bodies.Limit = bodies.DEFAULT_PAGE,
    after: Annotated[str | None, Query(pattern=CALL_ID, description="The last call of the previous page.")] = None,
) -> CallPage:
    """List the turn's calls with their arguments, results and statuses."""
    found = await handle.calls(limit, after)
    return CallPage(turn_id=handle.turn_id, session_id=handle.session_id, calls=found)


async def turn_status(handle: AsyncTurnHandle) -> TurnStatus:
    snapshot = await handle.snapshot()
    if snapshot is not None:
        state = snapshot.state.value
    else:
        try:
            found = await result_if_ready(handle)
            state = "accepted" if found is None else found.ending.value
        except TurnRejected:
            state = "rejected"
    return TurnStatus(turn_id=handle.turn_id, session_id=handle.session_id, state=state, snapshot=snapshot)


async def _result_or_status(
    otherwise: bodies.SubmitAnswer | TurnStatus, status: int, handle: AsyncTurnHandle, request: HttpRequest, prefer: str
) -> Response:
    """Return the result if it is ready within the caller's wait. Otherwise return `otherwise` with
    the turn's location."""
    headers = _location(handle)
    wait_s = requested_wait_s(prefer, request.gateway.settings.http_wait_s)
    if wait_s:
        headers["Preference-Applied"] = f"wait={wait_s:g}"
        found = await wait_for_result(request, handle, wait_s)
        if found is not None:
            return _json_response(found, headers=headers)
    return _json_response(otherwise, status, headers)


def _location(handle: AsyncTurnHandle) -> dict[str, str]:
    return {"Location": f"/v1/turns/{handle.turn_id}"}


def _json_response(
    model: TurnResult | bodies.SubmitAnswer | TurnStatus, status: int = 200, headers: Any = None
) -> Response:
    return Response(model.model_dump_json(), status, headers, "application/json")
