"""Which calls need a person's approval, why, and what SQL keeps of the question from before the step is
committed.
"""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from brainq.brain.brain import Brain
from brainq.contracts.claim import PlannedCall, TurnClaim
from brainq.contracts.people import ApprovalRequest, ApprovalRequirement
from brainq.observe.logs import logger
from brainq.tools.tool import MAX_REASON_CHARS, Tool

log = logger("brainq.turn")
MAX_SOURCES = 5


def approval_for(
    brain: Brain, tool: Tool, arguments: Mapping[str, Any], untrusted: Sequence[str] = ()
) -> ApprovalRequirement | None:
    """Why this call needs an approval, and for how long it waits; None: it needs none.

    The tool's own rule speaks first, then the brain's; a tool with `approval=False` hears neither. It fails
    closed: a call whose rule raises needs an approval. `untrusted` are the sources that the turn has read.
    """
    if tool.approval is False:
        return None
    reason = "" if tool.approval is None else _tool_reason(brain, tool, arguments)
    if not reason and tool.spec.effect in brain.approvals.effects:
        reason = f"calls with the effect {tool.spec.effect} need an approval"
    if not reason and untrusted and not tool.spec.effect.is_read:
        sources = ", ".join(untrusted[:MAX_SOURCES])
        reason = f"the turn has read what {sources} brought, and nobody vouches for that"
    return ApprovalRequirement(reason=reason, timeout_s=brain.approvals.timeout_s) if reason else None


def _tool_reason(brain: Brain, tool: Tool, arguments: Mapping[str, Any]) -> str:
    """The tool's own reason; empty where it has none."""
    rule = tool.approval
    if rule is None or rule is False:
        return ""
    if rule is True:
        return "every call of this tool needs an approval"
    if isinstance(rule, str):
        return rule
    try:
        return _rule_answer(rule, arguments)
    except Exception as error:
        log.error("approval rule raised", failure=error, brain=brain.name, tool=tool.name)
        return f"the approval rule failed: {type(error).__name__}"


def _rule_answer(rule: Callable[[dict[str, Any]], object], arguments: Mapping[str, Any]) -> str:
    # A copy: what is approved, hashed and run must be what was planned, whatever the rule does to it.
    answer = rule(copy.deepcopy(dict(arguments)))
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        raise TypeError("the rule answered an awaitable, which says nothing yet")
    if not answer:
        return ""
    reason = answer.strip()[:MAX_REASON_CHARS] if isinstance(answer, str) else ""
    return reason or "the tool asks for an approval of this call"


def approval_rows(claim: TurnClaim, plan: Sequence[PlannedCall], redact: bool) -> list[ApprovalRequest]:
    """One row a call that needs an approval. `redact`: SQL keeps no arguments; people read them from Redis."""
    return [
        ApprovalRequest(
            session_id=claim.session_id,
            turn_id=claim.turn_id,
            call_id=call.id,
            tool=call.tool,
            effect=call.effect,
            args_hash=call.args_hash,
            args_json=None if redact else json.dumps(json.loads(call.arguments_json)["arguments"]),
            reason=call.ask.reason,
            timeout_s=call.ask.timeout_s,
        )
        for call in plan
        if call.ask is not None
    ]
