"""Deliveries of webhooks about the caller's own sessions, and a retry of dead ones."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Path, Query

from brainq.contracts.webhook import DeliveryRow, DeliveryState
from brainq.errors import NotFound
from brainq.gateway.edge.dependencies import GatewayDep, PrincipalDep
from brainq.gateway.rest.bodies import DEFAULT_LIST_PAGE, Answer, ChangeAnswer, Limit


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


router = APIRouter(prefix="/v1/webhooks/deliveries", tags=["webhooks"])
MAX_ROW = 2**53 - 1


@router.get("")
async def deliveries(
    gateway: GatewayDep,
    principal: PrincipalDep,
    state: Annotated[str | None, Query(pattern="^(pending|done|dead)$")] = None,
    limit: Limit = DEFAULT_LIST_PAGE,
    after: Annotated[int | None, Query(ge=1, le=MAX_ROW, description="`next` of the page at hand.")] = None,
) -> DeliveryPage:
    """Messages to be sent (pending), accepted (done) or given up (dead), the newest first."""
    found = await gateway.client.deliveries(state, limit, principal.caller.prefixes, after)
    return DeliveryPage(
        deliveries=tuple(_delivery(row) for row in found), next=found[-1].row if len(found) == limit else None
    )


@router.post("/{delivery_id}/retry")
async def retry(
    delivery_id: Annotated[int, Path(ge=1, le=MAX_ROW)], gateway: GatewayDep, principal: PrincipalDep
) -> ChangeAnswer:
    """Send a dead message again, as if it were new. 404 where none of the caller's own has this id."""
    if not await gateway.client.send_again(delivery_id, principal.caller.prefixes):
        raise NotFound("no dead delivery of the caller's")
    return ChangeAnswer(changed=True)


def _delivery(row: DeliveryRow) -> Delivery:
    fields = asdict(row)
    return Delivery(id=fields.pop("row"), host=urlsplit(fields.pop("url")).netloc, **fields)
