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

READS = 10


def brain_reads(keys: Keys, brain: str) -> list[Command]:
    """Reads of a brain's cap, and of how many of its turns are live."""
    return [
        ("HGET", keys.room, f"brain {brain}"),
        ("ZLEXCOUNT", keys.room_live, f"[ {brain} ", f"( {brain}!"),
    ]


def place_reads(keys: Keys, turn: TurnKey, brain: str) -> list[Command]:
    """READS commands, whose replies `place_of` takes. `brain` is the one that the turn names, or empty."""
    session_id, turn_id = turn
    tenant = tenant_of(session_id)
    return [
        ("HMGET", keys.of_session(session_id, "session"), "live", "paused", "paused_at", "paused_why"),
        ("LPOS", keys.of_session(session_id, "waiting"), turn_id),
        ("ZRANK", keys.room_line(session_id), session_id),
        ("HMGET", keys.room, "all", "tenant", tenant),
        ("ZLEXCOUNT", keys.room_live, "[!", "+"),
        ("ZLEXCOUNT", keys.room_live, f"[{tenant}", f"({first_beyond(tenant)}"),
        ("HGET", keys.room_brains, session_id),
        ("ZRANK", keys.room_aside(brain, session_id), session_id),
        *brain_reads(keys, brain),
    ]


def place_of(row: Mapping[str, str], replies: Sequence[Any], now_ms: int) -> QueuePlace | None:
    """Of the turn whose fields are `row`; None where it waits no longer. Pure."""
    (live, paused, paused_at, paused_why), ahead, in_line, (size, share, own), all_live, its_live = replies[
        :6
    ]
    waits_for, aside, cap, brain_live = replies[6:]
    waits_for = waits_for if in_line is None else None
    is_its_own = waits_for is not None and waits_for == row.get("brain")
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
        in_line=in_line if waits_for is None else aside or 0,
        full=full,
        brain=waits_for or "",
        brain_live=brain_live if is_its_own else 0,
        brain_cap=int(cap or 0) if is_its_own else 0,
        share=int(share) if share else None,
        priority=cast(Priority, row.get("priority") or "normal"),
        gives_up_ms=max(0, int(row["created_at"]) + int(max_wait_ms) - now_ms) if max_wait_ms else None,
    )
