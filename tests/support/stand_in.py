"""Stand-ins for the part of a service that a machine uses."""

from __future__ import annotations

from typing import Any


def stand_in(fake: object) -> Any:
    """Return `fake` typed as a service. It has only the methods that the test's subject calls."""
    return fake
