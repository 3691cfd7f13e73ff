"""WebhookSender: sends what is due."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from brainq.contracts.turn import TurnRequest
from brainq.contracts.webhook import Claimed, Webhook
from brainq.observe.logs import logger
from brainq.observe.metrics import catalogue as m
from brainq.observe.metrics.counters import COUNTERS
from brainq.observe.outage import Outage
from brainq.observe.tracing import tracer
from brainq.observe.turn_spans import webhook_span
from brainq.ports.delivery_rows import DeliveryRows
from brainq.webhooks.backoff import MAX_TRIES, again_after_s
from brainq.webhooks.message import body_of, headers_of
from brainq.webhooks.post import post

log = logger("brainq.webhooks")

Post = Callable[[str, bytes, Mapping[str, str]], str]

EVERY_S = 1.0
LEASE_S = 60.0  # longer than a POST may take; who dies in the middle of one is found after it
PLACES = 4
GRACE_S = 4.0  # a worker waits no longer than 5 s for its threads


@dataclass(eq=False, kw_only=True)
class WebhookSender:
    """Any number of processes may send. A webhook that hangs holds up no other: each has places of its own.

    every_s   how often it looks for what is due
    lease_s   how long nobody else gets what one has taken
    places    deliveries to one webhook at a time, in this process
    request_of   a turn's request, for its trace; None for one that SQL no longer has
    """

    webhooks: Sequence[Webhook]
    rows: DeliveryRows
    post: Post = post
    every_s: float = EVERY_S
    lease_s: float = LEASE_S
    places: int = PLACES
    max_tries: int = MAX_TRIES
    grace_s: float = GRACE_S
    request_of: Callable[[str], TurnRequest | None] = lambda turn_id: None

    def run(self, stopping: threading.Event) -> None:
        """Send until told to stop; then what is on its way has `grace_s` to end, and else is left to its lease."""
        places: list[threading.Thread] = []
        for webhook in self.webhooks:
            outage = Outage(log, f"webhooks to {host_of(webhook.url)}")
            for _ in range(self.places):
                place = threading.Thread(
                    target=self._serve, args=(webhook, stopping, outage), name="webhook", daemon=True
                )
                place.start()
                places.append(place)
        stopping.wait()
        until = time.monotonic() + self.grace_s
        for place in places:
            place.join(max(0.0, until - time.monotonic()))

    def send_one(self, webhook: Webhook) -> bool:
        """Try what is due longest; False when nothing is."""
        delivery = self.rows.claim(webhook.url, self.lease_s)
        if delivery is None:
            return False
        if delivery.tries > self.max_tries:
            died = f"its worker died in each of {self.max_tries} tries, or its last one"
            self._give_up(webhook, delivery, died)
            return True
        body = body_of(delivery)
        why = self._post(webhook, delivery, body)
        if not why:
            self.rows.done(delivery.row)
            COUNTERS.add(m.DELIVERIES, host_of(webhook.url), "done")
        elif delivery.tries >= self.max_tries:
            self._give_up(webhook, delivery, why)
        else:
            self.rows.fail(
                delivery.row, delivery.tries, why, again_after_s(delivery.tries, random.random()), dead=False
            )
            COUNTERS.add(m.DELIVERIES, host_of(webhook.url), "again")
        return True

    def _post(self, webhook: Webhook, delivery: Claimed, body: bytes) -> str:
        """As `post`. Where telemetry is on, who is told may go on in the turn's trace."""
        headers = headers_of(delivery, body, webhook.secret)
        if tracer() is None:
            return self.post(webhook.url, body, headers)
        request = self.request_of(delivery.turn_id)
        with webhook_span(delivery, request, host_of(webhook.url)) as span:
            if span.traceparent is not None:
                headers["traceparent"] = span.traceparent
            why = self.post(webhook.url, body, headers)
            if why:
                span.fail("delivery_failed")
        return why

    def _serve(self, webhook: Webhook, stopping: threading.Event, outage: Outage) -> None:
        stopping.wait(random.random() * self.every_s)  # places take turns at looking
        while not stopping.is_set():
            sent = False
            try:
                sent = self.send_one(webhook)
            except Exception as failure:  # SQL is away; a thread that ended would be missed by nobody
                outage.failed(failure)
            else:
                outage.worked()
            if not sent:
                stopping.wait(self.every_s)

    def _give_up(self, webhook: Webhook, delivery: Claimed, why: str) -> None:
        log.warning(
            "delivery to a webhook is dead",
            turn_id=delivery.turn_id,
            delivery=delivery.row,
            host=host_of(webhook.url),
        )
        self.rows.fail(delivery.row, delivery.tries, why, 0.0, dead=True)
        COUNTERS.add(m.DELIVERIES, host_of(webhook.url), "dead")


def host_of(url: str) -> str:
    """What is shown of a url in logs: a path may hold a secret."""
    return urlsplit(url).netloc
