"""The body and the headers of a webhook, signed as the Standard Webhooks specification requires.

A receiver checks the signature with the webhook's secret. It is an HMAC over the message's id, the time and the body.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json

from brainq.contracts.webhook import DeliveryClaim


def message_body(delivery: DeliveryClaim) -> bytes:
    """Return the body, which is the same at every try."""
    return json.dumps(
        {
            "type": delivery.event,
            "timestamp": delivery.created_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "data": json.loads(delivery.data_json),
        },
        separators=(",", ":"),
    ).encode()


def message_headers(delivery: DeliveryClaim, body: bytes, secret: bytes) -> dict[str, str]:
    """Return the headers. `webhook-id` is the same at every try; the timestamp and the signature are new."""
    timestamp = str(int(delivery.now.timestamp()))
    return {
        "content-type": "application/json",
        "user-agent": "brainq-webhooks",
        "webhook-id": delivery.message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": sign(secret, delivery.message_id, timestamp, body),
    }


def sign(secret: bytes, message_id: str, timestamp: str, body: bytes) -> str:
    """Return `v1,` and the base64 of an HMAC-SHA256 over id, timestamp and body."""
    signed = b".".join((message_id.encode(), timestamp.encode(), body))
    return f"v1,{base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode()}"
