"""ApprovalHealer: what people decided, and Redis has forgotten, is decided again."""

from __future__ import annotations

from brainq.contracts.approval import Approval, AskState
from brainq.contracts.claim import CallRef
from brainq.contracts.healed import HealedPage
from brainq.observe.logs import logger
from brainq.ports.approval_rows import ApprovalRows
from brainq.ports.approvals import Approvals

log = logger("brainq.people")

PAGE = 500


class ApprovalHealer:
    """Nobody is asked a second time about the same arguments. Those that a person chose SQL may not have kept."""

    def __init__(self, rows: ApprovalRows, asks: Approvals) -> None:
        self._rows = rows
        self._asks = asks

    def heal(self, after_row: int) -> HealedPage:
        """Decide again what Redis asks although it was decided, of a page of the decisions after this row."""
        page = self._rows.decided_of_open_turns(after_row, PAGE)
        decided = [placed.approval for placed in page if not placed.approval.edited]
        told = self._asks.states([CallRef(one.session_id, one.turn_id, one.call_id) for one in decided])
        healed = 0
        for approval, asked in zip(decided, told, strict=True):
            try:
                healed += self._decide_again(approval, asked)
            except Exception as failure:
                # One that cannot be decided must not keep those after it from being decided.
                log.error("approval not decided again", failure=failure, approval_id=approval.id)
        return HealedPage(page[-1].row if page else after_row, len(page) == PAGE, healed)

    def _decide_again(self, approval: Approval, asked: AskState | None) -> bool:
        if asked is None or asked.state != "pending" or asked.args_hash != approval.args_hash:
            return False
        if approval.state not in ("approved", "denied"):
            return False
        word, _ = self._asks.decide(
            CallRef(approval.session_id, approval.turn_id, approval.call_id),
            args_hash=approval.args_hash,
            decision=approval.state,
            by=approval.decided_by,
            why=approval.comment,
        )
        return word in ("APPROVED", "DENIED")
