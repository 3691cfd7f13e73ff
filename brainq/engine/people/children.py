"""Child turns: calls start them and wait for their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from brainq.contracts.brain import Children
from brainq.contracts.call import ChildTurn, ToolFailure, ToolSuccess
from brainq.contracts.cell import tenant_key
from brainq.contracts.claim import CallClaim, CallRef
from brainq.contracts.ids import child_turn_id, sibling_session_id
from brainq.contracts.message import Message
from brainq.contracts.model import Spend
from brainq.contracts.status import Ending, StopReason, TraceStatus
from brainq.contracts.turn import ParentCall, TurnRequest, TurnResult
from brainq.contracts.view import BudgetSnapshot
from brainq.engine.brain.brains import ByBrain
from brainq.engine.people.admission import Admission, read_request
from brainq.engine.people.tenant_places import ONE_CELL, TenantPlaces
from brainq.engine.tools.results import outcome_text
from brainq.errors import BrainqError, SubmitConflict
from brainq.runtime.observe.logs import logger
from brainq.runtime.observe.tracing import current_traceparent

if TYPE_CHECKING:
    from brainq.adapters.redis.calls import RedisCalls
    from brainq.adapters.redis.outside import RedisOutsideResults
    from brainq.adapters.redis.turns import RedisTurns
    from brainq.adapters.sql.repositories.calls import Calls
    from brainq.adapters.sql.repositories.turns import Turns

log = logger("brainq.people")
PARENT_OVER = "its parent turn is over"
_INCOMPLETE_NOTES = {
    StopReason.LENGTH: "\n[The child's answer was cut off here.]",
    StopReason.FILTERED: "\n[A content filter stopped the child's answer here.]",
}


@dataclass(eq=False, kw_only=True)
class ChildDesk:
    """The desk that starts child turns, brings their results to the waiting calls, and cancels those that no call
    waits for.

    limits          the child limits of the parents' brains
    check_request   see `engine.people.intake.Intake`
    tenants         where the tenant of a child's session is, if it is not the parent's
    """

    limits: ByBrain[Children]
    requests: Turns
    admission: Admission
    turns: RedisTurns
    calls: RedisCalls
    outside: RedisOutsideResults
    intents: Calls
    check_request: Callable[[TurnRequest], TurnRequest]
    tenants: TenantPlaces = ONE_CELL

    def start(self, claim: CallClaim, child: ChildTurn) -> tuple[str, str]:
        """Start a child turn. Returns (`STARTED`, the child's turn id) or (`REFUSED`, the reason). The same call always
        has the same child."""
        turn_id = child_turn_id(claim.turn_id, claim.call_id)
        parent = self.requests.request(claim.turn_id)
        if parent is None:
            return "REFUSED", "SQL does not know the parent turn"
        limits = self.limits.of(parent.brain)
        if limits is None:
            return "REFUSED", f"the brain {parent.brain!r} of its parent is not here"
        depth = (parent.parent.depth if parent.parent else 0) + 1
        if depth > limits.max_depth:
            return "REFUSED", f"child turns may be {limits.max_depth} deep, and this one would be the next"
        if child.session_id is not None and (why := self._why_not_in(child.session_id, parent)):
            return "REFUSED", why
        if self.turns.claim_budget(claim.session_id, claim.turn_id, "children", [claim.call_id]) == ["SPENT"]:
            return "REFUSED", f"this turn has started all the {limits.max_turns} child turns it may"
        try:
            request = self.check_request(self._request(claim, child, turn_id, depth, parent.brain))
            # If this process dies before the call parks, the child's result and cost still belong to the call.
            self.calls.give_token(claim, turn_id)
            started = self.admission.admit(request).turn_id
        except SubmitConflict as conflict:
            if self.requests.request(turn_id) is None:
                return "REFUSED", str(conflict)  # the request_key was used for another request
            started = turn_id  # started by an earlier attempt of this call, with other arguments
        except BrainqError as failure:
            return "REFUSED", str(failure)
        if started != turn_id:
            return "REFUSED", f"its request_key belongs to turn {started!r}, which does not answer this call"
        self._deliver_again(turn_id)
        return "STARTED", turn_id

    def _why_not_in(self, session_id: str, parent: TurnRequest) -> str:
        """Return why a turn cannot have a child in this session, or "" if it can."""
        if session_id == parent.session_id:
            return "a child turn in its parent's own session would wait for its parent for ever"
        if self._is_above(parent, session_id):
            return f"session {session_id!r} has a turn that waits for this one, for ever then"
        if tenant_key(session_id) != tenant_key(parent.session_id):
            try:
                self.tenants.settle(session_id)
            except BrainqError as failure:
                return str(failure)
            if self.tenants.away(session_id) is not None:
                return f"session {session_id!r} is in another cell; a child turn is in the cell of its parent"
        return ""

    def _is_above(self, turn: TurnRequest, session_id: str) -> bool:
        """Return whether a turn of this session waits for `turn`, as its parent or further up."""
        above: TurnRequest | None = turn
        while above is not None and above.parent is not None:
            if above.parent.session_id == session_id:
                return True
            above = self.requests.request(above.parent.turn_id)
        return False

    def _deliver_again(self, turn_id: str) -> None:
        """Deliver the result of a child that ended before Redis lost its parent. It does not deliver the result again
        by itself."""
        result = self.requests.result(turn_id)
        request = self.requests.request(turn_id) if result is not None else None
        if result is not None and request is not None and request.parent is not None:
            self.deliver(request, result)

    def cancel_children(self, turn_ids: Sequence[str]) -> None:
        """Cancel the children of a turn that is over, or of a call that could not park. Idempotent."""
        for turn_id in turn_ids:
            request = self.requests.request(turn_id)
            if request is not None:
                self.turns.cancel(request.session_id, turn_id, PARENT_OVER)

    def check_parent(self, session_id: str, turn_id: str, parent: CallRef) -> bool:
        """Cancel a child whose parent call no longer waits for it. Returns whether it was cancelled."""
        facts = self.calls.facts(parent)
        if facts is not None and not facts.status.is_settled:
            return False
        if facts is None and self.requests.is_open(parent.turn_id):
            return False  # Redis lost the parent, which begins again and has not reached the call yet
        self.turns.cancel(session_id, turn_id, PARENT_OVER)
        return True

    def deliver(self, request: TurnRequest, result: TurnResult) -> str:
        """Deliver a child's result to the call that waits for it, and add its spending to the turn of that call."""
        assert request.parent is not None
        ref = CallRef(request.parent.session_id, request.parent.turn_id, request.parent.call_id)
        facts = self.calls.facts(ref)
        if facts is None:
            return "gone"
        tool, effect, attempt, step = facts.tool, facts.effect, facts.attempt, facts.step
        outcome = child_outcome(result)
        text, is_error = outcome_text(outcome)
        reply = self.outside.complete(
            ref,
            request.turn_id,
            status=TraceStatus.FAILED if is_error else TraceStatus.COMPLETED,
            message=Message(
                role="tool",
                content=text,
                call_id=ref.call_id,
                name=tool,
                is_error=is_error,
                turn=ref.turn_id,
                step=step,
            ),
            detail="child turn",
            spend=child_spend(result, step),
            outcome=outcome,
        )
        # USED: it was delivered before, by a worker that may have died before it could record it in SQL.
        if reply.word in ("SETTLED", "EARLY", "USED") and not effect.is_read:
            self.intents.record_outcome(ref.turn_id, ref.call_id, attempt, outcome, late=False)
        log.info("child turn delivered", turn_id=request.turn_id, parent=ref.turn_id, did=reply.word.lower())
        return reply.word.lower()

    def _request(self, claim: CallClaim, child: ChildTurn, turn_id: str, depth: int, brain: str | None) -> TurnRequest:
        """Return the request of the child. Raises InvalidInput naming the field that is wrong."""
        fields: dict[str, Any] = {
            "brain": brain,
            **child.options,
            **({} if child.brain is None else {"brain": child.brain}),
            "turn_id": turn_id,
            "session_id": child.session_id or sibling_session_id(claim.session_id, turn_id),
            "user_message": child.message,
            "traceparent": current_traceparent() or claim.traceparent,
            "parent": ParentCall(
                session_id=claim.session_id, turn_id=claim.turn_id, call_id=claim.call_id, depth=depth
            ),
        }
        request = read_request(fields)
        left = self.turns.budget(claim.session_id, claim.turn_id)
        return request.model_copy(update={"limits": limited_by_parent(request, left)})


def limited_by_parent(request: TurnRequest, left: BudgetSnapshot) -> Any:
    """Return the child's limits, with no more tokens and money than its parent has left."""
    limits = request.limits
    changed: dict[str, Any] = {}
    if left.tokens_max is not None:
        tokens = max(1, left.tokens_max - left.tokens_used)
        changed["max_total_tokens"] = min(limits.max_total_tokens or tokens, tokens)
    if left.cost_max_usd is not None:
        usd = max(1e-9, left.cost_max_usd - left.cost_usd)
        changed["max_cost_usd"] = min(limits.max_cost_usd or usd, usd)
    return limits.model_copy(update=changed)


def child_outcome(result: TurnResult) -> ToolSuccess | ToolFailure:
    """Return the result of the parent's call from the child's result."""
    if result.ending is Ending.COMPLETED and result.text:
        return ToolSuccess(value=result.text + _INCOMPLETE_NOTES.get(result.stop_reason, ""))
    if result.ending is Ending.COMPLETED:  # every answer has a text, which SQL may not have kept
        return ToolFailure(error="the child turn has ended, and its answer is no longer kept", error_type="ChildTurn")
    last_words = f"; its last words: {result.last_agent_message}" if result.last_agent_message else ""
    why = result.error or result.stop_reason.value
    return ToolFailure(
        error=f"the child turn ended as {result.ending.value} ({why}){last_words}", error_type="ChildTurn"
    )


def child_spend(result: TurnResult, step: int) -> Spend:
    """Return all that the child and its own children used, as one entry of the parent."""
    return Spend(
        kind="child",
        step=step,
        input_tokens=result.input_tokens,
        output_tokens=result.output_tokens,
        cache_read_tokens=result.cache_read_tokens,
        cache_creation_tokens=result.cache_creation_tokens,
        cost_usd=result.cost_usd,
        estimated=any(spend.estimated for spend in result.spends),
    )
