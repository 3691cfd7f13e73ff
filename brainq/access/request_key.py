"""Request keys that tenants choose, in a table where keys are unique over all of them."""

from __future__ import annotations

import hashlib

from brainq.access.caller import Caller


def own_request_key(caller: Caller, session_id: str, key: str) -> str:
    """The request key to submit under: two tenants may use the same words, and neither meets the other's turn.

    A caller of all sessions has its own words, by which the command line finds the turn, too. Of any other the key is
    hashed with its session: the same words in the same session are the same turn, whatever token they come with.
    """
    if caller.prefixes is None:
        return key
    return f"k-{hashlib.sha256(f'{session_id} {key}'.encode()).hexdigest()[:40]}"  # ids have no spaces
