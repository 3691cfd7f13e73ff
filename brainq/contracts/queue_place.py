"""Why a queued turn has not begun."""

from __future__ import annotations

from typing import Literal

from brainq.contracts.base import Wire
from brainq.contracts.turn import Priority


class QueuePlace(Wire):
    """Where a queued turn stands, and what is in its way.

    live         its session's live turn; "": none is
    ahead        turns of its session that wait before it
    is_paused    its session is; `paused_ms` for how long, `paused_why` as whoever paused it said
    in_line      it waits for room: so many of its tenant's sessions are before its own; None: its session is in no line
    full         what has no room: the `fleet`, or its `tenant`'s `share` of it alone; "": there is room
    brain        its session waits for this brain, of which `brain_live` turns are live, and no more than `brain_cap`
                 may be; "": for none. `in_line` are then those of its tenant who wait for that brain, too. Where it is
                 that of a turn before it, the numbers are 0
    share        how many turns of its tenant may be live; None: no sweeper has said so yet
    gives_up_ms  in how long it ends unbegun, by its `max_wait_s`; None: it waits as long as it takes
    """

    live: str = ""
    ahead: int = 0
    is_paused: bool = False
    paused_ms: int = 0
    paused_why: str = ""
    in_line: int | None = None
    full: Literal["", "fleet", "tenant"] = ""
    brain: str = ""
    brain_live: int = 0
    brain_cap: int = 0
    share: int | None = None
    priority: Priority = "normal"
    gives_up_ms: int | None = None
