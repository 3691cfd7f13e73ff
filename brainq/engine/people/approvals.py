"""Approvals: lists the calls that wait for a person's decision, and decides each once. The healer repeats decisions
that Redis has lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from brainq.contracts.claim import CallRef
from brainq.contracts.fleet import ComparedPage
from brainq.contracts.ids import split_call_id
from brainq.contracts.people import Approval, ApprovalState, ApprovalStatus, DecideResult, EditedCall
from brainq.contracts.rows import ApprovalRow
from brainq.engine.brain.brains import Brains, require_brain
from brainq.engine.people.edited_call import edited_call
from brainq.engine.people.tenant_places import ONE_CELL, TenantPlaces
from brainq.errors import ApprovalDecided, ApprovalNotFound, InvalidInput, TurnNotFound
from brainq.runtime.observe.logs import logger

if TYPE_CHECKING:
    from brainq.adapters.redis.people import RedisHolds
    from brainq.adapters.sql.repositories.approvals import Approvals
    from brainq.adapters.sql.repositories.turns import Turns

log = logger("brainq.people")
# SQL has an approval before its step is committed to Redis. If Redis does not know an approval of this age, it may
# still come, which matters only for lists.
COMMIT_TIME = timedelta(seconds=5)
_REFUSED_STATES: dict[DecideResult, ApprovalState] = {"EXPIRED": "expired", "ENDED": "void"}
_STATE_REASONS: dict[ApprovalState, str] = {
    "pending": "its step is just being committed; decide again in a few seconds",
    "void": "its turn ended before anybody decided; submit another turn",
    "expired": "nobody decided in time, and the call was refused; ask for it in another turn",
}
LIST_PAGE = 100
HEAL_PAGE = 500


def reconcile(row: Approval, status: ApprovalStatus | None, *, is_away: bool = False) -> Approval | None:
    """Return SQL's row with the state that Redis has. Returns None if its step is just being committed.

    is_away   its tenant moves, and Redis shows nothing of it
    """
    if (row.state != "pending" or is_away) and (status is None or status.state == "void"):
        return row
    if status is None:
        if datetime.now(UTC) - row.created_at < COMMIT_TIME:
            return None
        return row.model_copy(update={"state": "void"})
    kept = status.args_hash == row.args_hash  # otherwise SQL has the arguments of an earlier attempt
    return row.model_copy(
        update={
            "state": status.state,
            "edited": status.edited,
            "args_hash": status.args_hash,
            "arguments": status.arguments if status.arguments is not None else row.arguments if kept else None,
            "decided_by": status.by,
            "comment": status.why,
            "decided_at": None
            if status.decided_at_ms is None
            else datetime.fromtimestamp(status.decided_at_ms / 1000, UTC),
        }
    )


def decision_refusal(word: DecideResult, turn_state: str, now: Approval, decision: str) -> ApprovalDecided:
    """Return why an approval cannot be decided like this, or not any more, and what to do. `turn_state` is set if the
    turn has ended."""
    state = _REFUSED_STATES.get(word, now.state)
    if word == "STALE":
        problem = "its arguments are others than those that were seen; look again, then decide"
    elif word == "ENDED":
        problem = f"its turn is {turn_state} and makes no more calls; submit another turn"
    else:
        problem = _STATE_REASONS.get(state) or _decided_before(now, decision)
    return ApprovalDecided(now.id, state, problem)


def _decided_before(now: Approval, decision: str) -> str:
    by = f" by {now.decided_by}" if now.decided_by else ""
    other = ", with other arguments" if now.state == decision else ""
    return f"it was {now.state}{by} before{other}; a decision is final"


@dataclass(eq=False, kw_only=True)
class ApprovalDesk:
    """The desk that lists and decides approvals. While a turn lives Redis decides, and SQL keeps a record.

    brains    have the tools whose calls are edited
    redact    returns whether SQL keeps no arguments of the turn with this id
    tenants   where an approval is decided that Redis does not show because its tenant moves
    """

    rows: Approvals
    holds: RedisHolds
    requests: Turns
    brains: Brains
    redact: Callable[[str], bool]
    tenants: TenantPlaces = ONE_CELL

    def list(
        self,
        session_id: str | None = None,
        state: str | None = "pending",
        limit: int = 50,
        sessions: Sequence[str] | None = None,
        before: str | None = None,
        behind_row: int | None = None,
    ) -> tuple[Approval, ...]:
        """Return approvals, the newest first.

        state        None for every state
        sessions     only sessions with one of these prefixes
        before       only approvals older than the one with this id. Raises InvalidInput if it does not exist
        behind_row   only approvals older than this row
        """
        place = behind_row if before is None else self._place(before, sessions)

        def walk(in_sql: str | None) -> Iterator[ApprovalRow]:
            return self._walk(session_id, in_sql, state, sessions, place)

        if state in (None, "pending"):
            return tuple(found.approval for found in islice(walk(state), limit))
        # Approvals that SQL has not recorded yet come first, then recorded ones. In this order an approval that is
        # settled between both reads is found twice and not missed.
        unrecorded = list(islice(walk("pending"), limit))
        recorded = list(islice(walk(state), limit))
        found = {placed.row: placed.approval for placed in (*unrecorded, *recorded)}
        return tuple(found[row] for row in sorted(found, reverse=True)[:limit])

    def of_turn(self, turn_id: str) -> tuple[Approval, ...]:
        """Return the approvals of a turn in the order of their requests."""
        joined = self._reconciled(self.rows.of_turn(turn_id), again=True)
        return tuple(approval for approval in joined if approval is not None)

    def get(self, approval_id: str) -> Approval:
        """Return one approval in its present state. Raises InvalidInput for a malformed id, and ApprovalNotFound."""
        return self._now(self._row(approval_id))

    def _now(self, row: Approval) -> Approval:
        # An approval that is just being committed is shown as SQL has it, because its id was given.
        return self._reconciled([row], again=True)[0] or row

    def approve(self, approval_id: str, *, by: str = "", args_hash: str | None = None) -> Approval:
        """Let the call run. Approving again changes nothing.

        args_hash   the hash of the arguments that the person has seen; by default the present ones

        Raises ApprovalDecided if it was decided otherwise before, TenantMoved, and TenantMoving.
        """
        return self._decide(self._row(approval_id), "approved", by=by, args_hash=args_hash)

    def deny(self, approval_id: str, *, reason: str = "", by: str = "") -> Approval:
        """Refuse the call. The model reads `reason` and continues. Raises ApprovalDecided, as `approve`."""
        return self._decide(self._row(approval_id), "denied", by=by, why=reason)

    def edit(
        self, approval_id: str, arguments: Mapping[str, Any], *, by: str = "", args_hash: str | None = None
    ) -> Approval:
        """Let the call run with other arguments.

        args_hash   the hash of the arguments that the person has edited, as in `approve`

        Raises InvalidInput if they do not fit the tool, and ApprovalDecided, as `approve`.
        """
        row = self._row(approval_id)
        request = self.requests.request(row.turn_id)
        if request is None:
            raise TurnNotFound(f"the turn of approval {approval_id} is no longer in SQL")
        brain = require_brain(self.brains, request.brain)
        edited = edited_call(brain, row.tool, arguments, row.session_id, request)
        return self._decide(row, "approved", by=by, args_hash=args_hash, edited=edited)

    def _decide(
        self,
        row: Approval,
        decision: Literal["approved", "denied"],
        *,
        by: str,
        why: str = "",
        args_hash: str | None = None,
        edited: EditedCall | None = None,
    ) -> Approval:
        current = self._now(row)
        if edited is not None and edited.args_hash == current.args_hash and not current.edited:
            edited, args_hash = None, args_hash or current.args_hash  # the person has changed nothing
        word, detail = self.holds.decide_approval(
            _ref(row), args_hash=args_hash or current.args_hash, decision=decision, by=by, why=why, edited=edited
        )
        if word in ("APPROVED", "DENIED"):
            arguments = None if edited is None else json.loads(edited.arguments_json)["arguments"]
            status = ApprovalStatus(
                state=decision,
                by=by,
                why=why,
                args_hash=current.args_hash if edited is None else edited.args_hash,
                edited=edited is not None,
                arguments=arguments,
                expires_in_ms=0,
                decided_at_ms=None,
            )
            self._record_in_sql(current, status)
            decided = self.holds.approvals([_ref(row)])[0]
            is_kept = decided is not None and decided.state == decision
            return (reconcile(row, decided) if is_kept else None) or self.get(row.id)
        if word == "GONE" and current.state == "pending":
            self.tenants.require_shown(current.session_id)
        now = self.get(row.id)
        wanted_hash = args_hash if edited is None else edited.args_hash
        if word in ("DECIDED", "GONE") and now.state == decision and wanted_hash in (None, now.args_hash):
            self._heal_sql(now)
            return now
        raise decision_refusal(word, detail, now, decision)

    def _record_in_sql(self, approval: Approval, status: ApprovalStatus) -> None:
        if status.state == "pending":
            return
        kept = replace(status, arguments=None) if self.redact(approval.turn_id) else status
        try:
            self.rows.decided(approval.turn_id, approval.call_id, kept)
        except Exception as failure:
            # Redis has the decision. The end of the turn records it.
            log.error(
                "decision not recorded in SQL", failure=failure, turn_id=approval.turn_id, call_id=approval.call_id
            )

    def _heal_sql(self, approval: Approval) -> None:
        """Record a decision in SQL. The process that made the decision may have died before it did so."""
        status = self.holds.approvals([_ref(approval)])[0]
        if status is not None and status.state == approval.state:
            self._record_in_sql(approval, status)

    def _row(self, approval_id: str) -> Approval:
        turn_id, call_id = split_call_id(approval_id)
        row = self.rows.get(turn_id, call_id)
        if row is None:
            raise ApprovalNotFound(f"no approval {approval_id!r}; `brainq approvals` shows those that wait")
        return row

    def _place(self, approval_id: str, sessions: Sequence[str] | None) -> int:
        place = self.rows.row_number(*split_call_id(approval_id), sessions)
        if place is None:
            raise InvalidInput("before", f"approval {approval_id!r} does not exist; begin with the first page")
        return place

    def _walk(
        self,
        session_id: str | None,
        in_sql: str | None,
        wanted: str | None,
        sessions: Sequence[str] | None,
        before_row: int | None,
    ) -> Iterator[ApprovalRow]:
        """Yield the approvals that are `in_sql` in SQL and in truth `wanted`, the newest first."""
        while page := self.rows.list(session_id, in_sql, LIST_PAGE, before_row, sessions):
            approvals = self._reconciled([placed.approval for placed in page])
            for placed, approval in zip(page, approvals, strict=True):
                if approval is not None and wanted in (None, approval.state):
                    yield ApprovalRow(placed.row, approval)
            before_row = page[-1].row
            if len(page) < LIST_PAGE:
                return

    def _reconciled(self, rows: Sequence[Approval], *, again: bool = False) -> Sequence[Approval | None]:
        """Return each approval with the state that Redis has, or None if its step is just being committed.

        again   check approvals that are settled in SQL as well: Redis may have lost the decision and ask again
        """
        in_question = [row for row in rows if again or row.state == "pending"]
        statuses = dict(
            zip(
                (row.id for row in in_question),
                self.holds.approvals([_ref(row) for row in in_question]),
                strict=True,
            )
        )
        return [self._as_it_is(row, statuses.get(row.id)) for row in rows]

    def _as_it_is(self, row: Approval, status: ApprovalStatus | None) -> Approval | None:
        is_lost = row.state == "pending" and status is None
        return reconcile(row, status, is_away=is_lost and self.tenants.away(row.session_id) is not None)


def _ref(approval: Approval) -> CallRef:
    return CallRef(approval.session_id, approval.turn_id, approval.call_id)


class ApprovalHealer:
    """A healer that repeats decisions, so that nobody has to decide twice about the same arguments. Arguments that a
    person chose may not be in SQL."""

    def __init__(self, rows: Approvals, holds: RedisHolds) -> None:
        self._rows = rows
        self._holds = holds

    def heal(self, after_row: int) -> ComparedPage:
        """Repeat the decisions that Redis has lost, for a page of decisions after this row."""
        page = self._rows.decided_of_open_turns(after_row, HEAL_PAGE)
        decided = [placed.approval for placed in page if not placed.approval.edited and not placed.is_unreadable]
        statuses = self._holds.approvals([CallRef(one.session_id, one.turn_id, one.call_id) for one in decided])
        healed = 0
        for approval, status in zip(decided, statuses, strict=True):
            try:
                healed += self._decide_again(approval, status)
            except Exception as failure:
                # One approval that cannot be decided must not keep later ones from being decided.
                log.error("approval not decided again", failure=failure, approval_id=approval.id)
        return ComparedPage(page[-1].row if page else after_row, len(page) == HEAL_PAGE, healed)

    def _decide_again(self, approval: Approval, status: ApprovalStatus | None) -> bool:
        if status is None or status.state != "pending" or status.args_hash != approval.args_hash:
            return False
        if approval.state not in ("approved", "denied"):
            return False
        word, _ = self._holds.decide_approval(
            CallRef(approval.session_id, approval.turn_id, approval.call_id),
            args_hash=approval.args_hash,
            decision=approval.state,
            by=approval.decided_by,
            why=approval.comment,
        )
        return word in ("APPROVED", "DENIED")
