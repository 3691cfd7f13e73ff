"""Approvals in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from brainq.contracts.approval import Approval, AskedCall
from brainq.contracts.rows import ApprovalRow, SettledApproval


class ApprovalRows(Protocol):
    """Where people find what they are asked. Fitted by `store.repositories.approvals.Approvals`.

    ask       writes approvals down before their calls are committed
    decided   False, and nothing changed, unless the approval was pending there
    """

    def ask(self, rows: Sequence[AskedCall]) -> None: ...
    def get(self, turn_id: str, call_id: str) -> Approval | None: ...
    def of(self, turn_id: str) -> Sequence[Approval]: ...
    def decided_of_open_turns(self, after_row: int, limit: int) -> Sequence[ApprovalRow]: ...
    def place(self, turn_id: str, call_id: str, sessions: Sequence[str] | None = ...) -> int | None: ...
    def list(
        self,
        session_id: str | None = ...,
        state: str | None = ...,
        limit: int = ...,
        before_row: int | None = ...,
        sessions: Sequence[str] | None = ...,
    ) -> Sequence[ApprovalRow]: ...
    def decided(
        self,
        turn_id: str,
        call_id: str,
        state: SettledApproval,
        by: str = ...,
        comment: str = ...,
        edited: bool = ...,
        args_hash: str = ...,
        args_json: str | None = ...,
    ) -> bool: ...
