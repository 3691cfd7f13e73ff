"""What happens beside a turn's steps, in Redis: auxiliary model calls, and the wave a turn begins with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from pydantic import JsonValue

from brainq.contracts.claim import PlannedCall, TurnClaim
from brainq.contracts.message import Message
from brainq.contracts.usage import Spend


class Auxiliary(Protocol):
    """The opening wave, reflections, compactions; every write of an owner is fenced. See `RedisAuxiliary`.

    skip_opening   lets a turn go on without what its opening wave has not brought
    """

    def open(
        self, claim: TurnClaim, plan: Sequence[PlannedCall], opening_s: float
    ) -> Literal["OPENED", "ALREADY", "LOST"]: ...
    def skip_opening(self, session_id: str, turn_id: str) -> Literal["SKIPPED", "ALREADY", "EARLY"]: ...
    def begin(
        self,
        claim: TurnClaim,
        kind: Literal["reflection", "compaction"],
        mark: str,
        tokens: int,
        usd: float | None,
        under_way: Sequence[Spend] = ...,
    ) -> Literal["GO", "DONE", "SPENT", "LOST"]: ...
    def commit_note(
        self,
        claim: TurnClaim,
        kind: str,
        note: Message | None,
        spend: Spend | None,
        data: Mapping[str, JsonValue],
    ) -> bool: ...
    def compact(
        self,
        claim: TurnClaim,
        *,
        expect: int,
        drop: int,
        front: Sequence[Message],
        spend: Spend | None,
        data: Mapping[str, JsonValue],
        mark: str,
        forget: Sequence[str],
    ) -> Literal["COMPACTED", "CHANGED", "LOST"]: ...
