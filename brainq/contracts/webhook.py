"""Webhooks: the destinations of deliveries about endings, approvals and budgets, and their content."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, cast, get_args
from urllib.parse import urlsplit

from brainq.contracts.cell import RowId
from brainq.contracts.ids import ALL_SESSIONS, check_prefixes
from brainq.errors import InvalidInput

WebhookEvent = Literal["turn.ended", "approval.requested", "budget.nearly_spent"]
WEBHOOK_EVENTS: tuple[WebhookEvent, ...] = get_args(WebhookEvent)
DeliveryState = Literal["pending", "done", "dead"]
SECRET_PREFIX = "whsec_"
_LEAST_SECRET_BYTES, _MOST_SECRET_BYTES = 24, 64  # from the Standard Webhooks specification
_FIELDS = ("url", "secret", "events", "sessions")


@dataclass(frozen=True, slots=True)
class Webhook:
    """A destination of deliveries. Its repr does not show the secret.

    url: http or https. It identifies the webhook's deliveries.
    secret: signs them.
    events: the events that are sent.
    sessions: prefixes of the sessions that it covers. ("*",) covers all.
    """

    url: str
    secret: bytes = field(repr=False)
    events: tuple[WebhookEvent, ...] = WEBHOOK_EVENTS
    sessions: tuple[str, ...] = (ALL_SESSIONS,)


@dataclass(frozen=True, slots=True)
class NewDelivery:
    """A message to one webhook. A repeated `message_id` for the same URL is the same delivery. A delivery about a
    budget has no turn. Its session is the prefix of the budget's tenant or user, if it has one."""

    message_id: str
    url: str
    event: WebhookEvent
    session_id: str
    turn_id: str
    data_json: str


@dataclass(frozen=True, slots=True)
class DeliveryClaim:
    """A delivery that this process may try now. `now` is the time of the database's clock."""

    row: int
    message_id: str
    event: str
    turn_id: str
    data_json: str
    tries: int
    created_at: datetime
    now: datetime


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """A delivery in its present state.

    row: its id; see `RowId`.
    due_at: when it may be tried next.
    error: the error of the last try.
    """

    row: RowId
    message_id: str
    url: str
    event: str
    session_id: str
    turn_id: str
    state: DeliveryState
    tries: int
    due_at: datetime
    created_at: datetime
    updated_at: datetime
    error: str | None


def parse_webhooks(text: str) -> tuple[Webhook, ...]:
    """Return the webhooks of a JSON list of objects with `url`, `secret`, and optionally `events` and `sessions`.

    Raises InvalidInput, which shows no URL and no secret.
    """
    if not text.strip():
        return ()
    try:
        given: Any = json.loads(text)
    except ValueError:
        raise InvalidInput(
            "webhooks", 'it is not JSON; write [{"url": "https://...", "secret": "whsec_..."}]'
        ) from None
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in cast("list[object]", given)):
        raise InvalidInput("webhooks", 'write a JSON list of objects: [{"url": "https://...", "secret": "whsec_..."}]')
    found = [
        _parse_webhook(f"webhooks[{number}]", one) for number, one in enumerate(cast("list[dict[str, Any]]", given))
    ]
    urls = [one.url for one in found]
    for number, url in enumerate(urls):
        if url in urls[:number]:
            raise InvalidInput(f"webhooks[{number}].url", "it is repeated; give each url once, with all its events")
    return tuple(found)


def _parse_webhook(where: str, given: Mapping[str, Any]) -> Webhook:
    if unknown := sorted(set(given) - set(_FIELDS)):
        raise InvalidInput(where, f"{unknown[0]!r} is not one of {', '.join(_FIELDS)}")
    return Webhook(
        _check_url(f"{where}.url", given.get("url")),
        _check_secret(f"{where}.secret", given.get("secret")),
        _check_events(f"{where}.events", given.get("events", list(WEBHOOK_EVENTS))),
        check_prefixes(f"{where}.sessions", given.get("sessions", [ALL_SESSIONS])),
    )


def _check_url(where: str, value: object) -> str:
    remedy = "write http:// or https:// and a host, without name, password or fragment; the signature shows who sends"
    if not isinstance(value, str) or not value.isascii() or not value.isprintable() or " " in value:
        raise InvalidInput(where, remedy)
    try:
        parts = urlsplit(value)
        wrong = parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or parts.port == 0
    except ValueError:
        raise InvalidInput(where, remedy) from None
    if wrong or parts.fragment:
        raise InvalidInput(where, remedy)
    return value


def _check_secret(where: str, value: object) -> bytes:
    remedy = (
        f"write {SECRET_PREFIX} and {_LEAST_SECRET_BYTES} to {_MOST_SECRET_BYTES} random bytes in base64: "
        f'echo "{SECRET_PREFIX}$(openssl rand -base64 32)"'
    )
    if not isinstance(value, str) or not value.startswith(SECRET_PREFIX):
        raise InvalidInput(where, remedy)
    try:
        secret = base64.b64decode(value.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput(where, remedy) from None
    if not _LEAST_SECRET_BYTES <= len(secret) <= _MOST_SECRET_BYTES:
        raise InvalidInput(where, remedy)
    return secret


def _check_events(where: str, value: object) -> tuple[WebhookEvent, ...]:
    given = cast("list[object]", value) if isinstance(value, list) else []
    if not given or any(event not in WEBHOOK_EVENTS for event in given):
        raise InvalidInput(where, f"give a list of {', '.join(WEBHOOK_EVENTS)}")
    return tuple(event for event in WEBHOOK_EVENTS if event in given)
