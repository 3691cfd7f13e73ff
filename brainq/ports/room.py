"""The fleet's room in Redis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Room(Protocol):
    """How many turns may be live at once. Fitted by `state.room.RedisRoom`.

    keep   say how many, and how many of one tenant; put right what is not, and let in who waits. `own` are the shares
           of tenants that have one of their own, `caps` how many of a brain, where it has a cap: it stands until nobody
           has told it for a while, for not all who tell know the same brains. Returns how many are live
    """

    def keep(self, size: int, share: int, own: Mapping[str, int], caps: Mapping[str, int]) -> int: ...
