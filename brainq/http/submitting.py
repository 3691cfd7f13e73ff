"""Accepting a turn: what a submit asks of its caller, on every wire that takes one whole."""

from __future__ import annotations

from typing import Any

from brainq.access import Verb
from brainq.client.async_handle import AsyncTurnHandle
from brainq.client.options import SubmitOptions
from brainq.http.bodies.schedules import ScheduleBody
from brainq.http.bodies.submit import SubmitBody, TurnBody
from brainq.http.gateway import Asker, Gateway


def require_submit(by: Asker, body: SubmitBody | ScheduleBody) -> None:
    """Raise NotFound for a session that is not the caller's, Refused for what the caller has no verb for."""
    by.require(body.session_id)
    by.require_options(body.given())
    if body.on_busy not in ("enqueue", "reject"):
        by.require_verb(Verb.STEER)


async def accept(here: Gateway, body: SubmitBody, request_key: str) -> AsyncTurnHandle:
    """Submit the turn under this key. Raises as `Client.submit`."""
    options = options_of(body)
    options["request_key"] = request_key
    return await here.client.submit(body.session_id, body.user_message, **options)


def options_of(body: TurnBody) -> SubmitOptions:
    """What it says of its turn, as the client takes it."""
    given: Any = {name: getattr(body, name) for name in body.given() if name in SubmitOptions.__annotations__}
    if body.limits is not None:
        given["limits"] = body.limits.model_dump(exclude_unset=True)
    if body.options is not None:
        given["options"] = body.options.said()
    for name in ("attachments", "history", "client_tools"):
        if name in given:
            given[name] = [item.model_dump(exclude_unset=True) for item in given[name]]
    return given
