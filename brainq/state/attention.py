"""Having the sweeper look at a turn sooner than it would: one that stood still is looked at seldom."""

from __future__ import annotations

from brainq.state.keys import Keys
from brainq.state.typed_scripts import Scripts

GOING_ON_S = (
    5.0  # after a parked turn may have gone on: its doorbell, or its call's way to a lane, may be lost
)


LOOKED_AT_ANYWAY_S = 5.0  # a sweeper looks at a turn that has just parked this soon


def look_within(scripts: Scripts, keys: Keys, session_id: str, turn_id: str, after_s: float) -> None:
    """The sweeper looks at the turn in `after_s` at the latest."""
    scripts.index_hasten(member=f"{session_id} {turn_id}", after_ms=int(after_s * 1000) + 1)
