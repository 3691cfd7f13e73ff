"""From what a server says of a tool to the tool's effect. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brainq.contracts.effect import Effect


def effect_of(annotations: Mapping[str, Any] | None) -> Effect:
    """What is not said counts as the protocol has it: changes something, destructively, in an open world."""
    if not annotations:
        return Effect.DESTRUCTIVE
    if annotations.get("readOnlyHint") is True:
        return Effect.READ_ONLY
    if annotations.get("destructiveHint") is not False:
        return Effect.DESTRUCTIVE
    return Effect.LOCAL_WRITE if annotations.get("openWorldHint") is False else Effect.NETWORK


def is_open_world(annotations: Mapping[str, Any] | None) -> bool:
    """Whether it talks to whom nobody vouches for, as the protocol takes it where nothing is said."""
    return not annotations or annotations.get("openWorldHint") is not False


def is_idempotent(annotations: Mapping[str, Any] | None) -> bool:
    """Whether the server says that the same call again changes nothing more."""
    return bool(annotations) and annotations.get("idempotentHint") is True
