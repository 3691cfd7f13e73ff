"""What comparing a page of SQL's rows with Redis came to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HealedPage:
    """`last_row` is where the next page begins after; `more` is False when no rows are left behind it. `healed` counts
    what Redis did not know, and knows now."""

    last_row: int
    more: bool
    healed: int = 0
