"""What people are asked about a step's calls, as SQL keeps it from before the step is committed."""

from __future__ import annotations

import json
from collections.abc import Sequence

from brainq.contracts.approval import AskedCall
from brainq.contracts.claim import PlannedCall, TurnClaim


def approval_rows(claim: TurnClaim, plan: Sequence[PlannedCall], redact: bool) -> list[AskedCall]:
    """One row a call that needs an approval. `redact`: SQL keeps no arguments; people read them from Redis."""
    return [
        AskedCall(
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
