"""What a tool does to the world decides where and how its calls run."""

from __future__ import annotations

from enum import StrEnum


class Effect(StrEnum):
    """`READ_ONLY` calls run side by side; every other effect runs alone, in the model's order, in a lane."""

    READ_ONLY = "read_only"
    LOCAL_WRITE = "local_write"
    NETWORK = "network"
    DESTRUCTIVE = "destructive"

    @property
    def is_read(self) -> bool:
        return self is Effect.READ_ONLY
