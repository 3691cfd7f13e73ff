"""The verbs with which people decide on calls, and other programs send results of calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from brainq.client import checks
from brainq.client.cell_lists import list_approvals
from brainq.client.connection import Connection, FindCell
from brainq.client.paging import PAGE_SIZE, iterate_pages
from brainq.contracts.act import NewAct
from brainq.contracts.ids import check_id, split_call_id
from brainq.contracts.people import Approval
from brainq.engine.people.approvals import ApprovalDesk
from brainq.engine.people.outside import Taken
from brainq.engine.tools.results import OutcomeUnknown, ToolError


class ApprovalVerbs:
    """The part of `Client` that decides on approvals and sends results of parked calls."""

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
        """List approval requests, the newest first.

        state: pending, approved, denied, expired, void (the turn ended first). None and `all` list all.
        after: the id of the last approval of the previous page.
        session_prefixes: requests of sessions that begin with one of these prefixes, such as ("acme:",).
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
        """Iterate over every approval that `approvals` lists. Pages are read as they are needed."""
        return iterate_pages(
            lambda after: self.approvals(session, state, PAGE_SIZE, session_prefixes, after=after),
            lambda approval: approval.id,
        )

    def approval(self, approval_id: str) -> Approval:
        """Return an approval as it is now. Raises ApprovalNotFound."""
        known = checks.approval(approval_id)
        return self._connection.read(lambda wiring: wiring.people.approvals.get(known), find=_cell_of(known))

    def approve(self, approval_id: str, *, by: str = "", args_hash: str | None = None) -> Approval:
        """Approve a call, so that it runs. Approving it again changes nothing and returns the approval.

        by: the name of the person who decides, for the record.
        args_hash: `approval.args_hash` as it was shown to the person. The decision is refused if the arguments have
            changed.

        Raises ApprovalDecided if the call was denied, the approval has expired, or the turn has ended;
        ApprovalNotFound.
        """
        who, shown = checks.name(by), checks.args_hash(args_hash)
        return self._decide(
            "approve", approval_id, lambda desk, known: desk.approve(known, by=who, args_hash=shown), by=who
        )

    def deny(self, approval_id: str, reason: str = "", *, by: str = "") -> Approval:
        """Deny a call. The model reads `reason`, and the turn continues. Raises the errors of `approve`."""
        who, why = checks.name(by), checks.text("reason", reason, checks.MAX_COMMENT_CHARS)
        return self._decide(
            "deny", approval_id, lambda desk, known: desk.deny(known, reason=why, by=who), by=who, reason=why
        )

    def edit(
        self, approval_id: str, arguments: Mapping[str, Any], *, by: str = "", args_hash: str | None = None
    ) -> Approval:
        """Approve a call with these arguments in place of the model's. The model reads them.

        args_hash: the hash of the arguments before the edit, as they were shown. See `approve`.

        Raises InvalidInput if the arguments do not fit the tool's schema, and the errors of `approve`.
        """
        who, shown = checks.name(by), checks.args_hash(args_hash)
        return self._decide(
            "edit", approval_id, lambda desk, known: desk.edit(known, arguments, by=who, args_hash=shown), by=who
        )

    def complete_call(self, token: str, result: Any, *, partial: bool = False) -> Taken:
        """Send the result of a call whose tool returned `Pending(token)`. Can be called from any process; only the
        first result counts. The result is JSON, a File, or `WithFiles(JSON, [File, ...])`.

        Returns `settled`, `early` if the tool has not returned yet, or `late` if the call no longer waits. Raises
        TokenRefused if no call waits for the token or it was used before; InvalidInput.
        """
        return self._connection.do(
            lambda wiring: wiring.people.outside.complete(token, result, partial=partial),
            NewAct("result"),
            find=lambda cells: cells.of_token(token),
        )

    def fail_call(self, token: str, error: str | ToolError | OutcomeUnknown) -> Taken:
        """Send an error in place of a result. See `complete_call`.

        error: one line for the model; ToolError for a longer text; OutcomeUnknown if the change may or may not have
            been made.
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
