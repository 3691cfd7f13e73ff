"""Stand-ins that answer a part of a Protocol."""

from __future__ import annotations

from typing import Any


def stand_in(fake: object) -> Any:
    """`fake`, for a Protocol of which it has only what the test's subject asks for; any other method is an error."""
    return fake
