"""`Idempotency-Key`: what makes sending a request again safe."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated

from fastapi import Header

from brainq.access import own_request_key
from brainq.contracts.ids import DERIVED, new_turn_id
from brainq.errors import InvalidInput, Unreachable
from brainq.http.gateway import ID, Asker

Key = Annotated[
    str | None,
    Header(alias="Idempotency-Key", pattern=ID, description="The same key again is the same turn."),
]


@contextmanager
def submitting(by: Asker, session_id: str, idempotency_key: str | None) -> Generator[str]:
    """The request key to submit under. Where it cannot be known what became of it the caller is told his own, to send
    it again. Raises InvalidInput for a key that brainq could have made."""
    if idempotency_key is not None and idempotency_key.startswith(DERIVED):
        raise InvalidInput(
            "Idempotency-Key",
            f"it begins like the ids that brainq makes ({', '.join(DERIVED)}); choose another",
        )
    key = idempotency_key or new_turn_id()
    try:
        yield own_request_key(by.caller, session_id, key)
    except Unreachable as away:
        raise Unreachable(str(away), request_key=key) from away
