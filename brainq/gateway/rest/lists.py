"""Lists of the caller's own turns, sessions and webhook deliveries, page by page; and the fleet that runs
them.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Path, Query
from pydantic import AwareDatetime, BaseModel, Field

from brainq.client.lists import MAX_FILTER_VALUES, MAX_SEARCH_CHARS, read_metadata_pairs
from brainq.contracts.evaluation import Strategy
from brainq.contracts.fleet import Fleet, FleetActivity
from brainq.contracts.history import LIST_STATES, ListedTurn, Sort
from brainq.contracts.ids import MAX_ID_LENGTH
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.webhook import DeliveryRow, DeliveryState
from brainq.errors import NotFound
from brainq.gateway.edge.request import ID, TURN_ID, GatewayRequest, RequestDep
from brainq.gateway.rest.bodies import DEFAULT_LIST_PAGE, MAX_PAGE, Answer, ChangeAnswer, Limit
from brainq.gateway.rest.sessions import SessionPage
from brainq.gateway.rest.turns import TurnPage

router = APIRouter(prefix="/v1", tags=["lists"])
AfterTurn = Annotated[str | None, Query(pattern=TURN_ID, description="`next` of the page at hand.")]
FilterText = Annotated[str, Field(max_length=MAX_SEARCH_CHARS)]


class TurnQuery(BaseModel):
    """Filters of the list of turns; all that are given hold. `limit` and `after` select the page."""

    session: str | None = Field(None, pattern=ID)
    state: str | None = Field(
        None, pattern=f"^({'|'.join(LIST_STATES)})$", description="`accepted`: any that has not ended."
    )
    brain: str | None = Field(None, pattern=ID, description="The one that the turn names.")
    ending: Ending | None = None
    stop_reason: StopReason | None = None
    failing: bool = Field(
        False,
        description="Only those that failed or timed out, or in which a call failed, or a finalizer step was given up.",
    )
    min_cost_usd: float | None = Field(None, ge=0, allow_inf_nan=False)
    since: AwareDatetime | None = Field(None, description="Accepted then, or later.")
    until: AwareDatetime | None = Field(None, description="Accepted before.")
    text: str = Field(
        "", max_length=MAX_ID_LENGTH, description="In the turn's id or its session's, or the request key."
    )
    strategy: Strategy | None = Field(None, description="How it came to its answer, by its decision record in SQL.")
    search: str = Field(
        "",
        max_length=MAX_SEARCH_CHARS,
        description="In the message, the answer, metadata (`customer=42`), tags or ids; of the newest 20,000 turns "
        "before `until`.",
    )
    metadata: list[FilterText] = Field(
        [], max_length=MAX_FILTER_VALUES, description="`name=value`, such as `customer=42` or `order.id=A-1`; all hold."
    )
    prompt_tags: list[FilterText] = Field(
        [], max_length=MAX_FILTER_VALUES, description="Submitted with all of these tags."
    )
    sort: Sort = Field("newest", description="`cost`, `tokens`: the highest first, of turns that have ended.")
    limit: int = Field(DEFAULT_LIST_PAGE, ge=1, le=MAX_PAGE)
    after: str | None = Field(None, pattern=TURN_ID, description="`next` of the page at hand.")


@router.get("/turns")
async def turns(request: RequestDep, query: Annotated[TurnQuery, Query()]) -> TurnPage:
    """Turns of the caller's own, the newest first."""
    options: dict[str, Any] = {**dict(query), "metadata": read_metadata_pairs("metadata", query.metadata)}
    found = await request.client.turns(**options, session_prefixes=request.caller.prefixes)
    found = tuple(hide_foreign_parent(turn, request) for turn in found)
    return TurnPage(turns=found, next=found[-1].turn_id if len(found) == query.limit else None)


@router.get("/sessions")
async def sessions(
    request: RequestDep,
    prefix: Annotated[str | None, Query(pattern=ID, description="Only those whose id begins so.")] = None,
    limit: Limit = DEFAULT_LIST_PAGE,
    after: AfterTurn = None,
) -> SessionPage:
    """Sessions of the caller's own that have a turn, the one with the newest turn first."""
    found = await request.client.sessions(prefix or "", limit, request.caller.prefixes, after=after)
    found = tuple(one.model_copy(update={"last_turn": hide_foreign_parent(one.last_turn, request)}) for one in found)
    return SessionPage(sessions=found, next=found[-1].last_turn.turn_id if len(found) == limit else None)


@router.get("/fleet")
async def fleet(request: RequestDep) -> Fleet:
    """What runs turns, at this moment. It belongs to no single session, so it needs `*`."""
    request.require_session(None)
    return await request.client.fleet()


@router.get("/fleet/activity")
async def activity(request: RequestDep) -> FleetActivity:
    """What happened in each minute of the last hour. It belongs to no single session, so it needs `*`."""
    request.require_session(None)
    return await request.client.activity()


def hide_foreign_parent(turn: ListedTurn, request: GatewayRequest) -> ListedTurn:
    """A child may have been started from another tenant's session, which its caller must not see."""
    if turn.parent is None or request.may_access(turn.parent.session_id):
        return turn
    return turn.model_copy(update={"parent": None})


class Delivery(Answer):
    """A webhook's message. Of its URL only the host is shown, for the path may hold a secret."""

    id: int
    message_id: str
    host: str
    event: str
    session_id: str
    turn_id: str
    state: DeliveryState
    tries: int
    due_at: datetime
    created_at: datetime
    updated_at: datetime
    error: str | None


class DeliveryPage(Answer):
    """The newest first; `next` is the next page's `before`."""

    deliveries: tuple[Delivery, ...]
    next: int | None


deliveries_router = APIRouter(prefix="/v1/webhooks/deliveries", tags=["webhooks"])
MAX_ROW = 2**53 - 1


@deliveries_router.get("")
async def deliveries(
    request: RequestDep,
    state: Annotated[str | None, Query(pattern="^(pending|done|dead)$")] = None,
    limit: Limit = DEFAULT_LIST_PAGE,
    after: Annotated[int | None, Query(ge=1, le=MAX_ROW, description="`next` of the page at hand.")] = None,
) -> DeliveryPage:
    """Messages to be sent (pending), accepted (done) or given up (dead), the newest first."""
    found = await request.client.deliveries(state, limit, request.caller.prefixes, after)
    return DeliveryPage(
        deliveries=tuple(_delivery(row) for row in found), next=found[-1].row if len(found) == limit else None
    )


@deliveries_router.post("/{delivery_id}/retry")
async def retry(delivery_id: Annotated[int, Path(ge=1, le=MAX_ROW)], request: RequestDep) -> ChangeAnswer:
    """Send a dead message again, as if it were new. 404 where none of the caller's own has this id."""
    if not await request.client.send_again(delivery_id, request.caller.prefixes):
        raise NotFound("no dead delivery of the caller's")
    return ChangeAnswer(changed=True)


def _delivery(row: DeliveryRow) -> Delivery:
    fields = asdict(row)
    return Delivery(id=fields.pop("row"), host=urlsplit(fields.pop("url")).netloc, **fields)
