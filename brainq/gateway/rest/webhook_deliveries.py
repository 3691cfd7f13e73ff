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

# How webhooks' deliveries are told.


class Delivery(Answer):
    """What a webhook was, or is to be, sent. Of where to only the host is told: a path may hold a secret."""

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


# What webhooks were sent of the caller's own sessions, and sending again what was given up.

router = APIRouter(prefix="/v1/webhooks/deliveries", tags=["webhooks"])

MAX_ROW = 2**53 - 1


@router.get("")
async def deliveries(
    here: GatewayDep,
    by: PrincipalDep,
    state: Annotated[str | None, Query(pattern="^(pending|done|dead)$")] = None,
    limit: Limit = DEFAULT_LIST_PAGE,
    after: Annotated[int | None, Query(ge=1, le=MAX_ROW, description="`next` of the page at hand.")] = None,
) -> DeliveryPage:
    """What is to be sent (pending), was taken (done), or was given up (dead), the newest first."""
    found = await here.client.deliveries(state, limit, by.caller.prefixes, after)
    return DeliveryPage(
        deliveries=tuple(_delivery(row) for row in found), next=found[-1].row if len(found) == limit else None
    )


@router.post("/{delivery_id}/retry")
async def retry(
    delivery_id: Annotated[int, Path(ge=1, le=MAX_ROW)], here: GatewayDep, by: PrincipalDep
) -> ChangeAnswer:
    """Send again what was given up, as if it were new. 404 where none of the caller's own is dead under this id."""
    if not await here.client.send_again(delivery_id, by.caller.prefixes):
        raise NotFound("no dead delivery of the caller's")
    return ChangeAnswer(changed=True)


def _delivery(row: DeliveryRow) -> Delivery:
    told = asdict(row)
    return Delivery(id=told.pop("row"), host=urlsplit(told.pop("url")).netloc, **told)
