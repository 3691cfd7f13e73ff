"""Access: callers, their sessions and verbs, and the tokens that authenticate them. Tokens load SQL when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from brainq.app.access.caller import ALL_VERBS, Caller, Verb, may, own_request_key

if TYPE_CHECKING:
    from brainq.app.access.tokens import NewToken, Tokens

__all__ = ["ALL_VERBS", "Caller", "NewToken", "Tokens", "Verb", "may", "own_request_key"]


def __getattr__(name: str) -> Any:
    if name not in ("NewToken", "Tokens"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from brainq.app.access import tokens

    return getattr(tokens, name)
