"""How much a page holds: one answer is made whole, on the loop that every stream waits for."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

MAX_PAGE = 1_000
"""Of what is 2 kB each it takes a few milliseconds to write."""
PAGE = 200
LISTED = 50

Limit = Annotated[int, Query(ge=1, le=MAX_PAGE)]
