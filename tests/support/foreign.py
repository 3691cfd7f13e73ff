"""A producer without brainq: a plain task message, sent with kombu or by hand."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

from kombu.connection import Connection
from kombu.messaging import Producer


def push_with_kombu(redis_url: str, fields: dict[str, Any], *, prefix: str = "bq:", **headers: Any) -> str:
    """Send `brainq.turn.submit` with the three headers that a worker needs, and `headers`. Returns the task id."""
    task_id = str(uuid4())
    with Connection(redis_url, transport_options={"global_keyprefix": prefix}) as connection:
        Producer(connection).publish(
            [[], fields, {}],
            routing_key="brainq.turns",
            exchange="",
            headers={"lang": "py", "task": "brainq.turn.submit", "id": task_id, **headers},
            serializer="json",
            retry=False,
        )
    return task_id


def push_by_hand(client: Any, fields: dict[str, Any], *, key: str = "bq:brainq.turns") -> None:
    """Send the same message without a library. It needs neither base64 nor a real delivery tag."""
    client.lpush(
        key,
        json.dumps(
            {
                "body": json.dumps([[], fields, None]),
                "content-encoding": "utf-8",
                "content-type": "application/json",
                "headers": {"lang": "sh", "task": "brainq.turn.submit", "id": str(uuid4())},
                "properties": {"delivery_tag": "1", "delivery_info": {"exchange": "", "routing_key": "brainq.turns"}},
            }
        ),
    )
