"""Publishing doorbells that scripts left in an outbox, to any broker Celery can use."""

from __future__ import annotations

import json
from typing import Any

from celery import Celery


def publish_doorbell(app: Celery, text: str) -> None:
    """Publish one whole envelope (see `broker.envelope`) as the Celery message it describes.

    Raises kombu's OperationalError when the broker is away; the bell is then lost and the sweeper rings again.
    """
    message: dict[str, Any] = json.loads(text)
    properties: dict[str, Any] = message["properties"]
    with app.producer_or_acquire() as producer:
        producer.publish(
            message["body"],
            exchange="",
            routing_key=properties["delivery_info"]["routing_key"],
            headers=message["headers"],
            content_type=message["content-type"],
            content_encoding=message["content-encoding"],
            correlation_id=properties["correlation_id"],
            delivery_mode=properties["delivery_mode"],
            priority=properties["priority"],
            retry=True,
            retry_policy=app.conf.task_publish_retry_policy,
        )
