"""What is written down before a call that changes something starts."""

from __future__ import annotations

from typing import TypedDict

from brainq.contracts.effect import Effect


class Intent(TypedDict):
    """One attempt at a non-read call. `args_json` is None where no content is kept."""

    turn_id: str
    call_id: str
    attempt: int
    session_id: str
    tool: str
    effect: Effect
    args_hash: str
    args_json: str | None
    idempotency_key: str
    owner: str
