"""What judging needs of the world. `wiring/` fits SQL and Redis in."""

from __future__ import annotations

from typing import Protocol

from brainq.contracts.judgement import Judgement
from brainq.contracts.recorded import RecordedTurn


class JudgementRows(Protocol):
    """The judgement rows in SQL, a table of jobs on the database's own clock.

    claim    the number of this try, from 1, and nobody else gets the row for `lease_s`; None when it is settled,
             dead, held, not due yet, or was never planned
    beat     hold it for another `lease_s`; False when it is no longer ours
    settle   keep the judgement; nothing changes if the row is settled
    fail     try again after `again_after_s`, or never (`dead`); `tries` is the number `claim` gave, and nothing
             changes if the row is settled, or a later try has it
    revive   a dead row is pending again, with no tries behind it; False if it is not dead
    """

    def claim(self, turn_id: str, judge: str, lease_s: float) -> int | None: ...
    def beat(self, turn_id: str, judge: str, tries: int, lease_s: float) -> bool: ...
    def settle(self, turn_id: str, judge: str, judgement: Judgement) -> object: ...
    def fail(
        self, turn_id: str, judge: str, error: str, again_after_s: float, dead: bool, tries: int | None = None
    ) -> object: ...
    def revive(self, turn_id: str, judge: str) -> bool: ...


class Conversations(Protocol):
    """What is left of an ended turn: from Redis while it is there, then from SQL."""

    def recorded(self, session_id: str, turn_id: str, step_key: str) -> RecordedTurn | None:
        """The turn; None when its content is nowhere any more, or SQL kept it redacted."""
        ...
