"""The verbs that need a direct Client, and why."""

from __future__ import annotations

from typing import NoReturn

DIRECT_ONLY = {
    "state": "it reads and changes the turn's state in Redis itself",
    "begin_try": "gateways call it for clients that count their tries",
    "end_try": "gateways call it for clients that count their tries",
    "request": "a gateway shows a part of what was submitted: GET /v1/turns/{turn_id}/request",
    "delete_response": "it belongs to OpenAI's wire: DELETE /v1/responses/{response_id}",
    "is_response_deleted": "it belongs to OpenAI's wire",
}


def refuse_direct_verb(own: object, name: str) -> NoReturn:
    """Raise AttributeError for a name that a class lacks, with the reason if it is a verb of a direct client."""
    message = f"{type(own).__name__!r} object has no attribute {name!r}"
    if name in DIRECT_ONLY:
        message += f": the verb needs a direct Client, because {DIRECT_ONLY[name]}"
    raise AttributeError(message, name=name, obj=own)
