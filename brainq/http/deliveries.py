"""What webhooks were sent of the caller's own sessions, and sending again what was given up."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Path, Query

from brainq.contracts.webhook import DeliveryRow
from brainq.errors import NotFound
from brainq.http.bodies.base import Changed
from brainq.http.bodies.deliveries import Deliveries, Delivery
from brainq.http.gateway import By, Here
from brainq.http.paging import LISTED, Limit

router = APIRouter(prefix="/v1/webhooks/deliveries", tags=["webhooks"])

MOST = 2**53 - 1


@router.get("")
async def deliveries(
    here: Here,
    by: By,
    state: Annotated[str | None, Query(pattern="^(pending|done|dead)$")] = None,
    limit: Limit = LISTED,
    after: Annotated[int | None, Query(ge=1, le=MOST, description="`next` of the page at hand.")] = None,
) -> Deliveries:
    """What is to be sent (pending), was taken (done), or was given up (dead), the newest first."""
    found = await here.client.deliveries(state, limit, by.caller.prefixes, after)
    return Deliveries(
        deliveries=tuple(_seen(row) for row in found),
        next=found[-1].row if len(found) == limit else None,
    )


@router.post("/{delivery_id}/retry")
async def retry(delivery_id: Annotated[int, Path(ge=1, le=MOST)], here: Here, by: By) -> Changed:
    """Send again what was given up, as if it were new. 404 where none of the caller's own is dead under this id."""
    if not await here.client.send_again(delivery_id, by.caller.prefixes):
        raise NotFound("no dead delivery of the caller's")
    return Changed(changed=True)


def _seen(row: DeliveryRow) -> Delivery:
    told = asdict(row)
    return Delivery(id=told.pop("row"), host=urlsplit(told.pop("url")).netloc, **told)
