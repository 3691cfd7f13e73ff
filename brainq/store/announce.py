"""Which webhooks are told of what, and in which words. Pure. No content of a turn is in them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from brainq.contracts.approval import AskedCall
from brainq.contracts.ids import full_call_id
from brainq.contracts.session_prefix import is_within
from brainq.contracts.turn import TurnResult
from brainq.contracts.webhook import NewDelivery, Webhook, WebhookEvent

TOLD_AFTER_S = 1.0
"""The row is there a moment before the call waits, or the result is out: who is told at once would find neither."""


def of_ending(webhooks: Sequence[Webhook], result: TurnResult) -> list[NewDelivery]:
    """What is sent of a turn that has ended."""
    data = {
        "turn_id": result.turn_id,
        "session_id": result.session_id,
        "ending": result.ending.value,
        "stop_reason": result.stop_reason.value,
    }
    return _told(webhooks, "turn.ended", result.session_id, result.turn_id, result.turn_id, data)


def of_approvals(webhooks: Sequence[Webhook], asked: Sequence[AskedCall]) -> list[NewDelivery]:
    """What is sent of calls that people are asked about. The same call with the same arguments is told of once."""
    return [
        delivery
        for call in asked
        for delivery in _told(
            webhooks,
            "approval.requested",
            call.session_id,
            call.turn_id,
            f"{call.turn_id} {call.call_id} {call.args_hash}",
            {
                "approval_id": full_call_id(call.turn_id, call.call_id),
                "turn_id": call.turn_id,
                "session_id": call.session_id,
                "call_id": call.call_id,
                "tool": call.tool,
                "effect": call.effect.value,
            },
        )
    ]


def _told(
    webhooks: Sequence[Webhook],
    event: WebhookEvent,
    session_id: str,
    turn_id: str,
    what: str,
    data: Mapping[str, str],
) -> list[NewDelivery]:
    message_id = f"msg_{hashlib.sha256(f'{event} {what}'.encode()).hexdigest()[:32]}"
    return [
        NewDelivery(message_id, webhook.url, event, session_id, turn_id, json.dumps(data))
        for webhook in webhooks
        if event in webhook.events and is_within(webhook.sessions, session_id)
    ]
