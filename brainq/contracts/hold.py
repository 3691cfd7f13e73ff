"""Holds: what must be released before calls that change something may start."""

from __future__ import annotations

from typing import Literal

from brainq.contracts.base import Wire

HoldPolicy = Literal["deny", "release", "cancel"]
"""What becomes of a hold that outlives its timeout: the calls that wait are denied, or may go, or the turn is
cancelled."""

DEFAULT_HOLD_S = 3_600.0


class HoldSpec(Wire):
    """A hold as it is placed. `timeout_s` counts from then on; a readiness flag's from when its turn takes it."""

    id: str
    reason: str = ""
    timeout_s: float = DEFAULT_HOLD_S
    on_timeout: HoldPolicy = "deny"


def readiness_id(client_message_id: str) -> str:
    """The hold that an input with `readiness=False` places when it is read."""
    return f"ready:{client_message_id}"


class StandingHold(Wire):
    """A hold of a turn. `kind` is `hold`, or `readiness` for its readiness flag."""

    id: str
    kind: Literal["hold", "readiness"]
    reason: str = ""
    on_timeout: HoldPolicy = "deny"
    ends_in_ms: int
