"""Tokens that name the call they complete, so that nothing has to be looked up for them."""

from __future__ import annotations

import base64
import binascii
import re
import secrets

from brainq.contracts.claim import CallRef
from brainq.contracts.ids import check_id, check_turn_id
from brainq.errors import InvalidInput

PREFIX = "out_"
_NONCE_BYTES = 16
_NONCE = re.compile(r"[A-Za-z0-9_-]{16,64}", re.ASCII)  # 96 bits at least
_LONGEST = 500


def new_outside_token(ref: CallRef) -> str:
    """A token for this call that nobody can guess. Whoever has it can complete the call; it is a secret."""
    text = f"{ref.session_id} {ref.turn_id} {ref.call_id} {secrets.token_urlsafe(_NONCE_BYTES)}"
    return PREFIX + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def ref_of_token(token: str) -> CallRef | None:
    """The call that a token of `new_outside_token` names, or None for any other text.

    That the token is genuine it does not say: only the call itself knows which one it was given.
    """
    if not token.startswith(PREFIX) or len(token) > _LONGEST:
        return None
    body = token.removeprefix(PREFIX)
    try:
        text = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True).decode()
        session_id, turn_id, call_id, nonce = text.split(" ")
        check_id("session_id", session_id)
        check_turn_id("turn_id", turn_id)
        check_id("call_id", call_id)
    except (InvalidInput, ValueError, binascii.Error):
        return None
    return CallRef(session_id, turn_id, call_id) if _NONCE.fullmatch(nonce) else None


def client_token(call_id: str) -> str:
    """What stands in the place of a token where the client's own call waits. It is no secret, and completes nothing
    but through `TurnHandle.give_result`."""
    return f"client {call_id}"
