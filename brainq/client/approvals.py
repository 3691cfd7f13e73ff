"""The verbs of a client about what people, and other programs, are asked: approvals, and results from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from brainq.client import checks
from brainq.client.cell_lists import list_approvals
from brainq.client.connection import Connection, FindCell
from brainq.client.lists import PAGE_SIZE, iterate_pages
from brainq.contracts.act import NewAct
from brainq.contracts.ids import check_id, split_call_id
from brainq.contracts.people import Approval
from brainq.people.approvals import ApprovalDesk
from brainq.people.outside import Taken
from brainq.tools.results import OutcomeUnknown, ToolError


class ApprovalVerbs:
    """The part of `Client` by which people decide about calls, and calls get results from outside."""

    _connection: Connection

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
        of_session = None if session is None else check_id("session", session)
        wanted, most = checks.approval_state(state), checks.limit(limit)
        prefixes = checks.session_prefixes(session_prefixes)
        behind = None if after is None else checks.approval(after)
        return self._connection.read_all(
            lambda cells: list_approvals(cells, of_session, wanted, most, prefixes, behind)
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
        known = checks.approval(approval_id)
        return self._connection.read(lambda wiring: wiring.people.approvals.get(known), find=_cell_of(known))

    def approve(self, approval_id: str, *, by: str = "", args_hash: str | None = None) -> Approval:
        """Let a call run. Doing it again changes nothing, and returns the approval as it is.

        by          who decides, for the record
        args_hash   `approval.args_hash` as it was shown: a decision for other arguments is then refused

        Raises ApprovalDecided when it was denied, has expired, or its turn is over; ApprovalNotFound.
        """
        who, shown = checks.name(by), checks.args_hash(args_hash)
        return self._decide(
            "approve", approval_id, lambda desk, known: desk.approve(known, by=who, args_hash=shown), by=who
        )

    def deny(self, approval_id: str, reason: str = "", *, by: str = "") -> Approval:
        """Refuse a call; the model reads `reason`, and the turn goes on. Raises as `approve`."""
        who, why = checks.name(by), checks.text("reason", reason, checks.MAX_COMMENT_CHARS)
        return self._decide(
            "deny", approval_id, lambda desk, known: desk.deny(known, reason=why, by=who), by=who, reason=why
        )

    def edit(
        self, approval_id: str, arguments: Mapping[str, Any], *, by: str = "", args_hash: str | None = None
    ) -> Approval:
        """Let a call run with these arguments in place of the model's; the model reads which.

        args_hash   of the arguments that were edited, as they were shown; see `approve`

        Raises InvalidInput when they do not fit the tool's schema, else as `approve`.
        """
        who, shown = checks.name(by), checks.args_hash(args_hash)
        return self._decide(
            "edit", approval_id, lambda desk, known: desk.edit(known, arguments, by=who, args_hash=shown), by=who
        )

    def complete_call(self, token: str, result: Any, *, partial: bool = False) -> Taken:
        """Give a call that returned `Pending(token)` its result, once, from any process: JSON, a File, or
        `WithFiles(JSON, [File, ...])`.

        Returns `settled`; `early`, when the tool has not returned yet; or `late`, when no call waits any more.
        Raises TokenRefused for a token no call waits for, or that was used before; InvalidInput.
        """
        return self._connection.do(
            lambda wiring: wiring.people.outside.complete(token, result, partial=partial),
            NewAct("result"),
            find=lambda cells: cells.of_token(token),
        )

    def fail_call(self, token: str, error: str | ToolError | OutcomeUnknown) -> Taken:
        """Give a call that returned `Pending(token)` an error in place of a result. As `complete_call`.

        error   one line for the model; or ToolError for longer words of your own, OutcomeUnknown for a change that may
                or may not have been made
        """
        return self._connection.do(
            lambda wiring: wiring.people.outside.fail(token, error),
            NewAct("result"),
            find=lambda cells: cells.of_token(token),
        )

    def _decide(
        self,
        act: str,
        approval_id: str,
        decide: Callable[[ApprovalDesk, str], Approval],
        *,
        by: str,
        reason: str = "",
    ) -> Approval:
        known = checks.approval(approval_id)
        approval = self._connection.read(lambda wiring: decide(wiring.people.approvals, known), find=_cell_of(known))
        self._connection.record(NewAct(act, known, by, reason, approval.session_id, approval.turn_id))
        return approval


def _cell_of(approval_id: str) -> FindCell:
    turn_id, _ = split_call_id(approval_id)
    return lambda cells: cells.of_turn(turn_id)
