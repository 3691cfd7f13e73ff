"""The parking of calls whose function has returned and whose result will come from outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from brainq.contracts.call import ChildTurn, ServerTask, ToolFailure, new_outside_token, parse_outside_token
from brainq.contracts.claim import CallClaim, SettleReply
from brainq.engine.calls.function_run import one_line
from brainq.engine.calls.report import source_rows
from brainq.engine.calls.server_tasks import ServerTaskWatcher
from brainq.engine.tools.context import SideOutputs
from brainq.engine.tools.results import Pending
from brainq.errors import SubmitConflict

if TYPE_CHECKING:
    from brainq.adapters.redis.calls import RedisCalls
    from brainq.adapters.redis.outside import RedisOutsideResults
    from brainq.engine.people.children import ChildDesk


@dataclass(frozen=True, slots=True)
class Parker:
    """The machine that parks calls. A call fails with an explanation if this worker lacks the part that the call needs.

    outside    registers tokens that tools have made themselves
    children   starts child turns
    watch      polls servers for the tasks that they run
    """

    calls: RedisCalls
    outside: RedisOutsideResults | None
    children: ChildDesk | None
    watch: ServerTaskWatcher | None = None

    def park(
        self, claim: CallClaim, wish: Pending | ChildTurn | ServerTask, outputs: SideOutputs
    ) -> SettleReply | ToolFailure:
        """Park the call. Returns the reply of `RedisCalls.park`, or a failure if the call cannot wait."""
        if claim.step == 0:
            return ToolFailure(
                error="a context pack cannot wait for a result from outside: the turn has not begun",
                error_type="CannotWait",
            )
        if isinstance(wish, Pending):
            return self._for_result(claim, wish, outputs)
        if isinstance(wish, ServerTask):
            return self._for_task(claim, wish, outputs)
        return self._for_child(claim, wish, outputs)

    def _for_result(self, claim: CallClaim, pending: Pending, outputs: SideOutputs) -> SettleReply | ToolFailure:
        ref = claim.ref
        named = parse_outside_token(pending.token)
        if named is None:
            if self.outside is None:
                return _not_configured("store a tool's own tokens; return Pending(ctx.outside_token())")
            # The token is registered before the call parks, because a parked call may be completed at once.
            if not self.outside.register(pending.token, ref, pending.timeout_s):
                return _token_in_use()
        elif named != ref:
            return _token_in_use()
        return self._park(claim, "outside", pending.token, pending.timeout_s, outputs)

    def _for_task(self, claim: CallClaim, task: ServerTask, outputs: SideOutputs) -> SettleReply | ToolFailure:
        if self.watch is None:
            return _not_configured("poll a server's task")
        token = new_outside_token(claim.ref)
        watched = self.watch.put(claim, task, token)
        reply = self._park(claim, "outside", token, task.timeout_s, outputs)
        if reply.word == "PARKED":
            self.watch.watch(watched)
        else:
            self.watch.abandon(watched)
        return reply

    def _for_child(self, claim: CallClaim, child: ChildTurn, outputs: SideOutputs) -> SettleReply | ToolFailure:
        if self.children is None:
            return _not_configured("start child turns")
        try:
            word, detail = self.children.start(claim, child)
        except (ValueError, SubmitConflict) as refusal:  # the child turn is invalid, and a retry would not help
            word, detail = "REFUSED", one_line(refusal)
        if word != "STARTED":
            return ToolFailure(error=f"the child turn was refused: {detail}", error_type="ChildRefused")
        reply = self._park(claim, "child", detail, child.timeout_s, outputs)
        # If the reply is LOST, the call belongs to another attempt, which has the same child turn.
        if reply.word == "LATE":
            self.children.cancel_children((detail,))
        return reply

    def _park(
        self, claim: CallClaim, park: Literal["outside", "child"], token: str, timeout_s: float, outputs: SideOutputs
    ) -> SettleReply:
        return self.calls.park(
            claim,
            park=park,
            token=token,
            timeout_s=timeout_s,
            sources=source_rows(outputs, claim.call_id, claim.step),
            block_tool=outputs.block_tool,
            changes=[change.row() for change in outputs.changes],
        )


def _token_in_use() -> ToolFailure:
    return ToolFailure(
        error="the token is in use by another call; return Pending(ctx.outside_token())", error_type="TokenInUse"
    )


def _not_configured(what: str) -> ToolFailure:
    return ToolFailure(error=f"this worker cannot {what}", error_type="SetupError")
