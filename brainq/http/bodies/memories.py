"""How memories are told."""

from __future__ import annotations

from datetime import datetime

from brainq.contracts.memory import MemoryKind
from brainq.http.bodies.base import Answer


class KnownMemory(Answer):
    """One memory. `session_id` and `turn_id` are where it was first said, `updated_at` is when it was said last."""

    id: int
    scope: str
    kind: MemoryKind
    text: str
    times_seen: int
    session_id: str
    turn_id: str
    created_at: datetime
    updated_at: datetime


class MemoryPage(Answer):
    """Those first said last come first. `next`, given as `after`, is the next page; null: this is the last."""

    memories: tuple[KnownMemory, ...]
    next: int | None


class Forgotten(Answer):
    """How many memories and observations were deleted."""

    forgotten: int
