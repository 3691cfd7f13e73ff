"""Judgements in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from brainq.contracts.judgement import Judgement
from brainq.contracts.rows import JudgementRow
from brainq.contracts.usage import Spend


class JudgementRows(Protocol):
    """A table of jobs on the database's own clock. Fitted by `store.repositories.judgements.Judgements`.

    claim    the number of this try, from 1, and nobody else gets the row for `lease_s`; None when it is settled,
             dead, held, not due yet, or was never planned
    beat     hold it for another `lease_s`; False when it is no longer ours
    settle   keep the judgement, and what its models used; nothing changes if the row is settled
    fail     try again after `again_after_s`, or never (`dead`); `tries` is the number `claim` gave, and nothing
             changes if the row is settled, or a later try has it
    revive   a dead row is pending again, with no tries behind it; False if it is not dead
    due      (session, turn, judge) of those that nobody holds and that have been due for a while
    """

    def claim(self, turn_id: str, judge: str, lease_s: float) -> int | None: ...
    def beat(self, turn_id: str, judge: str, tries: int, lease_s: float) -> bool: ...
    def settle(
        self, turn_id: str, judge: str, judgement: Judgement, spends: Sequence[Spend] = ...
    ) -> bool: ...
    def fail(
        self, turn_id: str, judge: str, error: str, again_after_s: float, dead: bool, tries: int | None = ...
    ) -> bool: ...
    def revive(self, turn_id: str, judge: str) -> bool: ...
    def due(self, older_than_s: float, limit: int) -> Sequence[tuple[str, str, str]]: ...
    def of(self, turn_id: str) -> Sequence[JudgementRow]: ...
