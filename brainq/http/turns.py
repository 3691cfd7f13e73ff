"""Turns: submit one, look at it, follow its events, get its result."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Request, Response

from brainq.access import Verb
from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.timeline import TurnTimeline
from brainq.contracts.turn import TurnResult
from brainq.errors import TurnRejected, Unreachable
from brainq.http.bodies.submit import SubmitBody, Submitted
from brainq.http.bodies.turns import Calls, Children, Decided, Explained, Requested, Transcript, TurnSeen
from brainq.http.event_stream import begin, stream
from brainq.http.file_answer import file_answer
from brainq.http.gateway import CALL_ID, Asker, By, Gateway, Here, Turn
from brainq.http.paging import PAGE, Limit
from brainq.http.problems import Refused, documented
from brainq.http.request_keys import Key, submitting
from brainq.http.submitting import accept, require_submit
from brainq.http.waiting import known_result, result_within, wished

router = APIRouter(tags=["turns"])

MOST = 2**53 - 1
Prefer = Annotated[
    str,
    Header(description="`wait=n`: answer with the result, if it is out within n seconds."),
]
LATER: dict[int | str, dict[str, Any]] = {
    202: {
        "model": TurnSeen,
        "description": "The turn goes on.",
        "headers": {"Location": {"description": "The turn.", "schema": {"type": "string"}}},
    }
}
SUBMITTED: dict[int | str, dict[str, Any]] = {
    202: {**LATER[202], "model": Submitted, "description": "The turn is accepted."},
    200: {"model": TurnResult, "description": "Its result, where `Prefer: wait=n` asked for it."},
}
SOME_BYTES = {"type": "string", "format": "binary"}
STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events: each with `id`, the event's number, and `data`, a TurnEvent as JSON. "
        "Comments are heartbeats. The stream ends after the event of kind `result`.",
        "content": {
            "text/event-stream": {
                "schema": {
                    "type": "object",
                    "required": ["data"],
                    "properties": {
                        "id": {"type": "string", "pattern": "^[0-9]+$"},
                        "data": {
                            "type": "string",
                            "contentMediaType": "application/json",
                            "contentSchema": {"$ref": "#/components/schemas/TurnEvent"},
                        },
                    },
                }
            }
        },
    },
    204: {"description": "The final event was seen already; there is nothing to come again for."},
}


@router.post("/v1/turns", status_code=202, response_model=None, responses={**SUBMITTED, **documented(409)})
async def submit(
    body: SubmitBody,
    here: Here,
    by: By,
    request: Request,
    idempotency_key: Key = None,
    prefer: Prefer = "",
) -> Response:
    """Submit a turn. With `Prefer: wait=n` the answer is its result, if that is out in time.

    What `on_busy` does to a live turn needs the verb `steer`, too; to wait for the result needs `read`; `model`,
    `provider`, `system_prompt`, `skill_context`, `cwd`, `limits` and `options` need
    `configure`.
    """
    require_submit(by, body)
    if wished(prefer, here.settings.http_wait_s):
        by.require_verb(Verb.READ)
    with submitting(by, body.session_id, idempotency_key) as key:
        handle = await accept(here, body, key)
    told = Submitted(
        turn_id=handle.turn_id,
        session_id=handle.session_id,
        created=handle.created,
        receipt=handle.joined,
    )
    try:
        return await _result_or(told, 202, handle, here, by, request, prefer)
    except (Refused, Unreachable):
        # Nobody can wait just now. The turn is accepted all the same, which its producer must hear.
        return _json(told, 202, _where(handle))


@router.get("/v1/turns/{turn_id}")
async def look(handle: Turn) -> TurnSeen:
    """How a turn stands."""
    return await seen(handle)


@router.get("/v1/turns/{turn_id}/request")
async def requested(handle: Turn, by: By) -> Requested:
    """What was submitted, and which call started it."""
    asked = await handle.request()
    parent = asked.parent if asked.parent and by.may(asked.parent.session_id) else None
    return Requested(
        turn_id=handle.turn_id,
        session_id=handle.session_id,
        user_message=asked.user_message,
        kind=asked.kind,
        brain=asked.brain,
        model=asked.model,
        metadata=asked.metadata,
        prompt_tags=asked.prompt_tags,
        attachments=len(asked.attachments),
        parent=parent,
    )


@router.get("/v1/turns/{turn_id}/children")
async def children(handle: Turn, by: By) -> Children:
    """The turns that its calls started, those in the caller's own sessions."""
    found = tuple(child for child in await handle.children() if by.may(child.session_id))
    return Children(turn_id=handle.turn_id, session_id=handle.session_id, children=found)


@router.get("/v1/turns/{turn_id}/explain")
async def explain(handle: Turn) -> Explained:
    """What happens next to it, and why: what it waits for, and who has it."""
    return Explained(turn_id=handle.turn_id, session_id=handle.session_id, next=await handle.explain())


@router.get(
    "/v1/turns/{turn_id}/result",
    response_model=None,
    responses={**LATER, 200: {"model": TurnResult, "description": "How it ended."}, **documented(409)},
)
async def result(handle: Turn, here: Here, by: By, request: Request, prefer: Prefer = "") -> Response:
    """The result, for every ending. 202 while there is none; `Prefer: wait=n` waits for it."""
    found = await known_result(handle)
    if found is not None:
        return _json(found)
    return await _result_or(await seen(handle), 202, handle, here, by, request, prefer)


@router.get("/v1/turns/{turn_id}/timeline")
async def timeline(handle: Turn) -> TurnTimeline:
    """The turn as bars over time. While its events are there it is gone on with by those above its `seq`."""
    return await handle.timeline()


@router.get("/v1/turns/{turn_id}/decision")
async def decision(handle: Turn) -> Decided:
    """The turn's decision record: strategy, tools, hashes of context and prompt. Null until it is written."""
    return Decided(turn_id=handle.turn_id, session_id=handle.session_id, decision=await handle.decision())


@router.get("/v1/turns/{turn_id}/transcript", responses=documented(410))
async def transcript(
    handle: Turn,
    limit: Limit = PAGE,
    after: Annotated[int, Query(ge=0, le=MOST, description="Leave out so many messages.")] = 0,
) -> Transcript:
    """The turn's messages: the user's, the model's with the calls it made, and the results of those."""
    messages = await handle.transcript(limit, after)
    return Transcript(turn_id=handle.turn_id, session_id=handle.session_id, messages=messages)


@router.get(
    "/v1/turns/{turn_id}/files/{sha256}",
    response_class=Response,
    responses={200: {"description": "Its bytes.", "content": {"*/*": {"schema": SOME_BYTES}}}},
)
async def file(handle: Turn, sha256: Annotated[str, Path(pattern="^[0-9a-f]{64}$")]) -> Response:
    """The bytes of an attachment of one of the turn's messages, by its hash there."""
    return file_answer(await handle.file(sha256))


@router.get("/v1/turns/{turn_id}/calls")
async def calls(
    handle: Turn,
    limit: Limit = PAGE,
    after: Annotated[
        str | None, Query(pattern=CALL_ID, description="The last call of the page at hand.")
    ] = None,
) -> Calls:
    """Every call of the turn, with its arguments, its result and how it stands."""
    found = await handle.calls(limit, after)
    return Calls(turn_id=handle.turn_id, session_id=handle.session_id, calls=found)


@router.get("/v1/turns/{turn_id}/events", response_model=None, responses={**STREAM, **documented(410)})
async def events(
    handle: Turn,
    here: Here,
    by: By,
    request: Request,
    after: Annotated[int, Query(ge=0, le=MOST, description="Begin behind this event.")] = 0,
    last_event_id: Annotated[
        int | None, Header(ge=0, le=MOST, description="As `after`, and wins over it.")
    ] = None,
) -> Response:
    """Follow a turn's events from any number on, to the final one."""
    behind = after if last_event_id is None else last_event_id
    found = await stream(request, here, by, lambda: begin(handle, behind))
    return Response(status_code=204) if found is None else found


async def seen(handle: AsyncTurnHandle) -> TurnSeen:
    snapshot = await handle.snapshot()
    if snapshot is not None:
        state = snapshot.state.value
    else:
        try:
            found = await known_result(handle)
            state = "accepted" if found is None else found.ending.value
        except TurnRejected:
            state = "rejected"
    return TurnSeen(turn_id=handle.turn_id, session_id=handle.session_id, state=state, snapshot=snapshot)


async def _result_or(
    told: Submitted | TurnSeen,
    status: int,
    handle: AsyncTurnHandle,
    here: Gateway,
    by: Asker,
    request: Request,
    prefer: str,
) -> Response:
    """The result if it is out as soon as the caller wishes; else what is told meanwhile, and where to look."""
    headers = _where(handle)
    wait_s = wished(prefer, here.settings.http_wait_s)
    if wait_s:
        headers["Preference-Applied"] = f"wait={wait_s:g}"
        with here.streams.enter(by.caller.counted_as) as place:
            found = await result_within(handle, wait_s, place, request.receive)
        if found is not None:
            return _json(found, headers=headers)
    return _json(told, status, headers)


def _where(handle: AsyncTurnHandle) -> dict[str, str]:
    return {"Location": f"/v1/turns/{handle.turn_id}"}


def _json(model: TurnResult | Submitted | TurnSeen, status: int = 200, headers: Any = None) -> Response:
    return Response(model.model_dump_json(), status, headers, "application/json")
