"""Access: callers, their sessions and verbs, and the tokens that authenticate them."""

from brainq.access.caller import ALL_VERBS, Caller, Verb, may, own_request_key
from brainq.access.tokens import NewToken, Tokens

__all__ = ["ALL_VERBS", "Caller", "NewToken", "Tokens", "Verb", "may", "own_request_key"]
