"""The verbs of a client about what people, and other programs, are asked: approvals, and results from outside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from brainq.cells.cells import Cells
from brainq.client import checks
from brainq.client.cell_lists import list_approvals
from brainq.client.connection import raises_unreachable
from brainq.client.lists import PAGE_SIZE, iterate_pages
from brainq.contracts.ids import check_id, split_call_id
from brainq.contracts.people import Approval
from brainq.people.approvals import ApprovalDesk
from brainq.people.outside import Taken
from brainq.tools.results import OutcomeUnknown, ToolError


@raises_unreachable
class ApprovalVerbs:
    """The part of `Client` by which people decide about calls, and calls get results from outside."""

    _cells: Cells

    def approvals(
        self,
        session: str | None = None,
        state: str | None = "pending",
        limit: int = 50,
        session_prefixes: Sequence[str] | None = None,
        *,
        after: str | None = None,
    ) -> tuple[Approval, ...]:
        """Calls that people are, or were, asked to approve, the newest first.

        state      pending, approved, denied, expired, void (its turn ended first); None or `all`: any
        after      the id of the last approval of the page at hand: gives the page after it
        session_prefixes   only of sessions that begin with one of these prefixes, such as ("acme:",)
        """
        return list_approvals(
            self._cells,
            None if session is None else check_id("session", session),
            checks.approval_state(state),
            checks.limit(limit),
            checks.session_prefixes(session_prefixes),
            None if after is None else checks.approval(after),
        )

    def iterate_approvals(
        self, session: str | None = None, state: str | None = "pending", session_prefixes: Sequence[str] | None = None
    ) -> Iterator[Approval]:
        """Every approval that `approvals` would list, page by page as it is needed."""
        return iterate_pages(
            lambda after: self.approvals(session, state, PAGE_SIZE, session_prefixes, after=after),
            lambda approval: approval.id,
        )

    def approval(self, approval_id: str) -> Approval:
        """One approval as it is now. Raises ApprovalNotFound."""
        return self._desk(approval_id).get(checks.approval(approval_id))

    def approve(self, approval_id: str, *, by: str = "", args_hash: str | None = None) -> Approval:
        """Let a call run. Doing it again changes nothing, and returns the approval as it is.

        by          who decides, for the record
        args_hash   `approval.args_hash` as it was shown: a decision for other arguments is then refused

        Raises ApprovalDecided when it was denied, has expired, or its turn is over; ApprovalNotFound.
        """
        return self._desk(approval_id).approve(
            checks.approval(approval_id), by=checks.name(by), args_hash=checks.args_hash(args_hash)
        )

    def deny(self, approval_id: str, reason: str = "", *, by: str = "") -> Approval:
        """Refuse a call; the model reads `reason`, and the turn goes on. Raises as `approve`."""
        return self._desk(approval_id).deny(
            checks.approval(approval_id),
            reason=checks.text("reason", reason, checks.MAX_COMMENT_CHARS),
            by=checks.name(by),
        )

    def edit(
        self, approval_id: str, arguments: Mapping[str, Any], *, by: str = "", args_hash: str | None = None
    ) -> Approval:
        """Let a call run with these arguments in place of the model's; the model reads which.

        args_hash   of the arguments that were edited, as they were shown; see `approve`

        Raises InvalidInput when they do not fit the tool's schema, else as `approve`.
        """
        return self._desk(approval_id).edit(
            checks.approval(approval_id), arguments, by=checks.name(by), args_hash=checks.args_hash(args_hash)
        )

    def complete_call(self, token: str, result: Any, *, partial: bool = False) -> Taken:
        """Give a call that returned `Pending(token)` its result, once, from any process: JSON, a File, or
        `WithFiles(JSON, [File, ...])`.

        Returns `settled`; `early`, when the tool has not returned yet; or `late`, when no call waits any more.
        Raises TokenRefused for a token no call waits for, or that was used before; InvalidInput.
        """
        return self._cells.of_token(token).people.outside.complete(token, result, partial=partial)

    def fail_call(self, token: str, error: str | ToolError | OutcomeUnknown) -> Taken:
        """Give a call that returned `Pending(token)` an error in place of a result. As `complete_call`.

        error   one line for the model; or ToolError for longer words of your own, OutcomeUnknown for a change that may
                or may not have been made
        """
        return self._cells.of_token(token).people.outside.fail(token, error)

    def _desk(self, approval_id: str) -> ApprovalDesk:
        """Of the cell that has the approval's turn."""
        turn_id, _ = split_call_id(checks.approval(approval_id))
        return self._cells.of_turn(turn_id).people.approvals
