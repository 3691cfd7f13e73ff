"""Where queued turns stand, and what is in their way: so many reads a turn, to be sent with others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from brainq.contracts.queue_place import QueuePlace
from brainq.contracts.session_prefix import first_beyond, tenant_of
from brainq.contracts.sweep import TurnKey
from brainq.contracts.turn import Priority
from brainq.state.connection import Command
from brainq.state.keys import Keys

READS = 6


def place_reads(keys: Keys, turn: TurnKey) -> list[Command]:
    """READS commands, whose replies `place_of` takes."""
    session_id, turn_id = turn
    tenant = tenant_of(session_id)
    return [
        ("HMGET", keys.of_session(session_id, "session"), "live", "paused", "paused_at", "paused_why"),
        ("LPOS", keys.of_session(session_id, "waiting"), turn_id),
        ("ZRANK", keys.room_line(session_id), session_id),
        ("HMGET", keys.room, "all", "tenant", tenant),
        ("ZCARD", keys.room_live),
        ("ZLEXCOUNT", keys.room_live, f"[{tenant}", f"({first_beyond(tenant)}"),
    ]


def place_of(row: Mapping[str, str], replies: Sequence[Any], now_ms: int) -> QueuePlace | None:
    """Of the turn whose fields are `row`; None where it waits no longer. Pure."""
    (live, paused, paused_at, paused_why), ahead, in_line, (size, share, own), all_live, its_live = replies
    if ahead is None:
        return None
    share = own or share
    full: Literal["", "fleet", "tenant"] = ""
    if size and all_live >= int(size):
        full = "fleet"
    elif share and its_live >= int(share):
        full = "tenant"
    max_wait_ms = row.get("max_wait_ms")
    return QueuePlace(
        live=live or "",
        ahead=ahead,
        is_paused=paused == "1",
        paused_ms=max(0, now_ms - int(paused_at)) if paused_at else 0,
        paused_why=paused_why or "",
        in_line=in_line,
        full=full,
        share=int(share) if share else None,
        priority=cast(Priority, row.get("priority") or "normal"),
        gives_up_ms=max(0, int(row["created_at"]) + int(max_wait_ms) - now_ms) if max_wait_ms else None,
    )
