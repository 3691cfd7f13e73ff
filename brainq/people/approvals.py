"""ApprovalDesk: lists the calls that people are asked about, and decides them, each once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from brainq.contracts.approval import Approval, AskState, EditedCall
from brainq.contracts.claim import CallRef
from brainq.contracts.ids import split_call_id
from brainq.contracts.rows import ApprovalRow
from brainq.contracts.turn import TurnRequest
from brainq.errors import ApprovalNotFound, InvalidInput, TurnNotFound
from brainq.observe.logs import logger
from brainq.people.approval_truth import in_truth, refusal
from brainq.ports.approval_rows import ApprovalRows
from brainq.ports.approvals import Approvals
from brainq.ports.turn_rows import TurnRows

log = logger("brainq.people")

PAGE = 100

Editor = Callable[[str, Mapping[str, Any], str, TurnRequest], EditedCall]
"""From (tool, a person's arguments, session id, the turn's request) to the call as it will run. Raises InvalidInput."""


@dataclass(eq=False, kw_only=True)
class ApprovalDesk:
    """Redis decides, while a turn lives; SQL is told, and remembers.

    editor   makes a call of a person's arguments
    redact   whether SQL is to keep no arguments of the turn with this id
    """

    rows: ApprovalRows
    asks: Approvals
    requests: TurnRows
    editor: Editor
    redact: Callable[[str], bool]

    def list(
        self,
        session_id: str | None = None,
        state: str | None = "pending",
        limit: int = 50,
        sessions: Sequence[str] | None = None,
        before: str | None = None,
    ) -> tuple[Approval, ...]:
        """The newest first; `state` None: in whatever state. `sessions`: only of those with one of these prefixes.

        before   only those that were asked before this approval, by its id. Raises InvalidInput where there is none
        """
        place = None if before is None else self._place(before, sessions)

        def walk(in_sql: str | None) -> Iterator[ApprovalRow]:
            return self._walk(session_id, in_sql, state, sessions, place)

        if state in (None, "pending"):
            return tuple(found.approval for found in islice(walk(state), limit))
        # Those that SQL has not been told of yet, and those that it has. In this order, so that one that is settled
        # between the two is met twice and not missed.
        untold = list(islice(walk("pending"), limit))
        told = list(islice(walk(state), limit))
        found = {placed.row: placed.approval for placed in (*untold, *told)}
        return tuple(found[row] for row in sorted(found, reverse=True)[:limit])

    def of(self, turn_id: str) -> tuple[Approval, ...]:
        """A turn's approvals, in the order they were asked for."""
        joined = self._joined(self.rows.of(turn_id), again=True)
        return tuple(approval for approval in joined if approval is not None)

    def get(self, approval_id: str) -> Approval:
        """One approval as it stands. Raises InvalidInput for what is not an id, ApprovalNotFound when there is none."""
        row = self._row(approval_id)
        # One that is just being committed is shown as SQL has it: it was asked for by its name.
        return self._joined([row], again=True)[0] or row

    def approve(self, approval_id: str, *, by: str = "", args_hash: str | None = None) -> Approval:
        """Let the call run. Approving again changes nothing.

        args_hash   of the arguments the decider has seen; by default those it has now

        Raises ApprovalDecided when it stands otherwise already.
        """
        return self._decide(approval_id, "approved", by=by, args_hash=args_hash)

    def deny(self, approval_id: str, *, reason: str = "", by: str = "") -> Approval:
        """Refuse the call; the model reads `reason` and goes on. Raises ApprovalDecided, as `approve`."""
        return self._decide(approval_id, "denied", by=by, why=reason)

    def edit(
        self, approval_id: str, arguments: Mapping[str, Any], *, by: str = "", args_hash: str | None = None
    ) -> Approval:
        """Let the call run with other arguments.

        args_hash   of the arguments the decider has edited, as in `approve`

        Raises InvalidInput when they do not fit the tool, and ApprovalDecided, as `approve`.
        """
        row = self._row(approval_id)
        request = self.requests.request(row.turn_id)
        if request is None:
            raise TurnNotFound(f"the turn of approval {approval_id} is no longer in SQL")
        edited = self.editor(row.tool, arguments, row.session_id, request)
        return self._decide(approval_id, "approved", by=by, args_hash=args_hash, edited=edited)

    def _decide(
        self,
        approval_id: str,
        decision: Literal["approved", "denied"],
        *,
        by: str,
        why: str = "",
        args_hash: str | None = None,
        edited: EditedCall | None = None,
    ) -> Approval:
        seen = self.get(approval_id)
        ref = _ref(seen)
        if edited is not None and edited.args_hash == seen.args_hash and not seen.edited:
            edited, args_hash = (
                None,
                args_hash or seen.args_hash,
            )  # the arguments it has are what the person wants
        word, detail = self.asks.decide(
            ref,
            args_hash=args_hash or seen.args_hash,
            decision=decision,
            by=by,
            why=why,
            edited=edited,
        )
        if word in ("APPROVED", "DENIED"):
            arguments = None if edited is None else json.loads(edited.arguments_json)["arguments"]
            asked = AskState(
                state=decision,
                by=by,
                why=why,
                args_hash=seen.args_hash if edited is None else edited.args_hash,
                edited=edited is not None,
                arguments=arguments,
                expires_in_ms=0,
                decided_at_ms=None,
            )
            self._tell_sql(seen, asked)
            return self.get(approval_id)
        now = self.get(approval_id)
        wanted_hash = args_hash if edited is None else edited.args_hash
        if word in ("DECIDED", "GONE") and now.state == decision and wanted_hash in (None, now.args_hash):
            self._heal_sql(now)
            return now
        raise refusal(word, detail, now, decision)

    def _tell_sql(self, approval: Approval, asked: AskState) -> None:
        if asked.state == "pending":
            return
        keeps = asked.edited and asked.arguments is not None and not self.redact(approval.turn_id)
        try:
            self.rows.decided(
                approval.turn_id,
                approval.call_id,
                asked.state,
                by=asked.by,
                comment=asked.why,
                edited=asked.edited,
                args_hash=asked.args_hash,
                args_json=json.dumps(asked.arguments) if keeps else None,
            )
        except Exception as failure:
            # It is decided, and Redis knows: the end of the turn writes it down.
            log.error(
                "decision not recorded in SQL",
                failure=failure,
                turn_id=approval.turn_id,
                call_id=approval.call_id,
            )

    def _heal_sql(self, approval: Approval) -> None:
        """Whoever decided it may have died before SQL was told."""
        told = self.asks.states([_ref(approval)])[0]
        if told is not None and told.state == approval.state:
            self._tell_sql(approval, told)

    def _row(self, approval_id: str) -> Approval:
        turn_id, call_id = split_call_id(approval_id)
        row = self.rows.get(turn_id, call_id)
        if row is None:
            raise ApprovalNotFound(f"no approval {approval_id!r}; `brainq approvals` shows those that wait")
        return row

    def _place(self, approval_id: str, sessions: Sequence[str] | None) -> int:
        place = self.rows.place(*split_call_id(approval_id), sessions)
        if place is None:
            raise InvalidInput(
                "before", f"there is no approval {approval_id!r}, or no more; begin with the first page"
            )
        return place

    def _walk(
        self,
        session_id: str | None,
        in_sql: str | None,
        wanted: str | None,
        sessions: Sequence[str] | None,
        before_row: int | None,
    ) -> Iterator[ApprovalRow]:
        """All that are `in_sql` in SQL and `wanted` in truth, the newest first."""
        while page := self.rows.list(session_id, in_sql, PAGE, before_row, sessions):
            approvals = self._joined([placed.approval for placed in page])
            for placed, approval in zip(page, approvals, strict=True):
                if approval is not None and wanted in (None, approval.state):
                    yield ApprovalRow(placed.row, approval)
            before_row = page[-1].row
            if len(page) < PAGE:
                return

    def _joined(self, rows: Sequence[Approval], *, again: bool = False) -> Sequence[Approval | None]:
        """Each as Redis has it where that is the truth; None for one whose step is just being committed.

        again   look also at those that are settled in SQL: Redis may have lost the decision, and asks again
        """
        asked = [row for row in rows if again or row.state == "pending"]
        told = dict(
            zip((row.id for row in asked), self.asks.states([_ref(row) for row in asked]), strict=True)
        )
        return [in_truth(row, told.get(row.id)) for row in rows]


def _ref(approval: Approval) -> CallRef:
    return CallRef(approval.session_id, approval.turn_id, approval.call_id)
