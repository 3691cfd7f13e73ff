"""Stand-ins that answer a part of what a machine asks of its services."""

from __future__ import annotations

from typing import Any


def stand_in(fake: object) -> Any:
    """`fake`, for a service of which it has only what the test's subject asks for; any other method is an error."""
    return fake
