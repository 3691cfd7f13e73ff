"""`on_post_tool_use` for calls that no worker ended: results from outside and of child turns, what was
rescued, waits that are over."""

from __future__ import annotations

from functools import partial

from brainq.brain import Brain
from brainq.contracts.callbacks import PostToolUse
from brainq.contracts.claim import TurnClaim
from brainq.contracts.message import ToolCall
from brainq.contracts.view import TurnView
from brainq.observe.logs import logger
from brainq.ports.turns import Turns
from brainq.turn.client_tools import specs_of
from brainq.turn.patience import Trying

log = logger("brainq.turn")


def call_due_hooks(brain: Brain, turns: Turns, claim: TurnClaim, view: TurnView, trying: Trying) -> None:
    """Call it for each of them, and note that it was. Who dies in between leaves them to the next owner. A hook that
    raises changes nothing."""
    hook = brain.callbacks.on_post_tool_use
    if hook is None or not view.hooks_due:
        return
    specs = specs_of(brain, view.request)
    for due in trying(partial(turns.due_hooks, claim, view.hooks_due)):
        spec = specs.get(due.tool)
        if spec is None:
            continue  # this brain has it no more
        call = ToolCall(id=due.call_id, name=due.tool, arguments=dict(due.arguments))
        try:
            hook(PostToolUse(claim.turn_id, claim.session_id, call, spec, due.outcome))
        except Exception as failure:
            log.error("on_post_tool_use raised", failure=failure, turn_id=claim.turn_id, call_id=due.call_id)
    trying(partial(turns.hooks_done, claim, view.hooks_due))
