"""Approvals in Redis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from brainq.contracts.approval import AskState, DecideWord, EditedCall
from brainq.contracts.claim import CallRef


class Approvals(Protocol):
    """Redis is the truth of approvals while their turn lives. Fitted by `state.approvals.RedisApprovals`.

    decide   (word, detail): `APPROVED`, `DENIED`, `EXPIRED`; `DECIDED` with how it stands; `STALE`: the arguments
             are other ones; `ENDED` with the turn's state; `GONE`
    states   None where Redis does not know the call, or it needs no approval
    """

    def decide(
        self,
        ref: CallRef,
        *,
        args_hash: str,
        decision: Literal["approved", "denied"],
        by: str,
        why: str,
        edited: EditedCall | None = ...,
    ) -> tuple[DecideWord, str]: ...
    def states(self, refs: Sequence[CallRef]) -> Sequence[AskState | None]: ...
