"""Tokens of outside results, drawn from the seed, because the library's own are drawn from the system."""

from __future__ import annotations

import base64
from random import Random

from brainq.contracts.call import OUTSIDE_TOKEN_PREFIX, parse_outside_token
from brainq.contracts.claim import CallRef
from tests.support.model.rules import require


def make_token(rng: Random, ref: CallRef) -> str:
    """Return a token of the tool's own, or one that names its call."""
    nonce = f"{rng.randrange(16**20):020x}"
    if rng.random() < 0.3:
        return f"job-{nonce}"
    text = f"{ref.session_id} {ref.turn_id} {ref.call_id} {nonce}"
    token = OUTSIDE_TOKEN_PREFIX + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
    require(parse_outside_token(token) == ref, "a token as the model makes it names its call", token)
    return token
