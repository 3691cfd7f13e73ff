"""Delivery of webhooks about endings and approvals: over HTTP, signed, at least once.

    event ─ same transaction ─► a pending row a webhook ─► WebhookSender, threads in the finalizer pool
                                                                │
              row: done, or due again, or dead with its error ◄── POST, signed

The row in SQL is the truth: it is claimed, settled and retried there. Redis and Celery have no part in it."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

from brainq.contracts.turn import TurnRequest
from brainq.contracts.webhook import DeliveryClaim, Webhook
from brainq.observe.logs import OutageLog, logger
from brainq.observe.metrics import catalogue as m
from brainq.observe.metrics.counters import COUNTERS
from brainq.observe.spans import webhook_span
from brainq.observe.threads import KeptThread
from brainq.observe.tracing import fail_span, in_span, traceparent_of, tracer
from brainq.people.webhook_post import post
from brainq.people.webhook_signature import message_body, message_headers
from brainq.ports.sql import DeliveryRows

log = logger("brainq.webhooks")
FIRST_DELAY_S = 5.0
FACTOR = 3.0
MAX_DELAY_S = 6 * 3600.0
MAX_TRIES = 12  # after these it is dead: 17 to 28 hours after the first try, as the jitter falls
JITTER = 0.25
POLL_S = 1.0
LEASE_S = 60.0  # longer than a POST may take; who dies in the middle of one is found after it
THREADS = 4
GRACE_S = 4.0  # a worker waits no longer than 5 s for its threads


def retry_delay_s(tries: int, chance: float) -> float:
    """Seconds until the next try, after `tries` of them: 5 s, 15 s, 45 s, ... at most 6 h, each a quarter more or less.

    chance   from 0 to 1, a random number: receivers that come back are not met by all at once
    """
    plain = min(MAX_DELAY_S, FIRST_DELAY_S * FACTOR ** (tries - 1))
    return plain * (1 - JITTER + 2 * JITTER * chance)


@dataclass(eq=False, kw_only=True)
class WebhookSender:
    """Any number of processes may send. A webhook that hangs holds up no other: each has threads of its own.

    every_s   how often it looks for what is due
    lease_s   for which no other process gets a delivery that one has claimed
    threads   deliveries to one webhook at a time, in this process
    request_of   a turn's request, for its trace; None for one that SQL no longer has
    """

    webhooks: Sequence[Webhook]
    rows: DeliveryRows
    post: Callable[[str, bytes, Mapping[str, str]], str] = post
    every_s: float = POLL_S
    lease_s: float = LEASE_S
    threads: int = THREADS
    max_tries: int = MAX_TRIES
    grace_s: float = GRACE_S
    request_of: Callable[[str], TurnRequest | None] = lambda turn_id: None

    def run(self, stopping: threading.Event) -> None:
        """Send until stopped; then what is on its way has `grace_s` to end, and else is left to its lease."""
        over = threading.Event()
        places: list[KeptThread] = []
        for webhook in self.webhooks:
            serve = partial(self._serve, webhook, OutageLog(log, f"webhooks to {url_host(webhook.url)}"))
            places += [KeptThread("brainq-webhook", serve, over) for _ in range(self.threads)]
        try:
            while True:
                for place in places:
                    with suppress(RuntimeError):  # a refused thread is logged, and tried again; the others send
                        place.ensure()
                if stopping.wait(self.every_s):
                    return
        finally:
            over.set()  # whatever ends this: it is run again, with places of its own
            until = time.monotonic() + self.grace_s
            for place in places:
                place.stop(max(0.0, until - time.monotonic()))

    def send_one(self, webhook: Webhook) -> bool:
        """Try what is due longest; False when nothing is."""
        delivery = self.rows.claim(webhook.url, self.lease_s)
        if delivery is None:
            return False
        if delivery.tries > self.max_tries:
            died = f"its worker died in each of {self.max_tries} tries, or its last one"
            self._give_up(webhook, delivery, died)
            return True
        body = message_body(delivery)
        why = self._post(webhook, delivery, body)
        if not why:
            self.rows.done(delivery.row)
            COUNTERS.add(m.DELIVERIES, url_host(webhook.url), "done")
        elif delivery.tries >= self.max_tries:
            self._give_up(webhook, delivery, why)
        else:
            self.rows.fail(
                delivery.row, delivery.tries, why, retry_delay_s(delivery.tries, random.random()), dead=False
            )
            COUNTERS.add(m.DELIVERIES, url_host(webhook.url), "again")
        return True

    def _post(self, webhook: Webhook, delivery: DeliveryClaim, body: bytes) -> str:
        """As `post`. Where telemetry is on, the receiver may go on in the turn's trace."""
        headers = message_headers(delivery, body, webhook.secret)
        if tracer() is None:
            return self.post(webhook.url, body, headers)
        request = self.request_of(delivery.turn_id)
        with in_span(webhook_span(delivery, request, url_host(webhook.url))) as span:
            headers["traceparent"] = traceparent_of(span.get_span_context())
            why = self.post(webhook.url, body, headers)
            if why:
                fail_span(span, "delivery_failed")
        return why

    def _serve(self, webhook: Webhook, outage: OutageLog, stopping: threading.Event) -> None:
        stopping.wait(random.random() * self.every_s)  # places take turns at looking
        while not stopping.is_set():
            sent = False
            try:
                sent = self.send_one(webhook)
            except Exception as failure:  # SQL is away
                outage.failed(failure)
            else:
                outage.worked()
            if not sent:
                stopping.wait(self.every_s)

    def _give_up(self, webhook: Webhook, delivery: DeliveryClaim, why: str) -> None:
        log.warning(
            "delivery to a webhook is dead", turn_id=delivery.turn_id, delivery=delivery.row, host=url_host(webhook.url)
        )
        self.rows.fail(delivery.row, delivery.tries, why, 0.0, dead=True)
        COUNTERS.add(m.DELIVERIES, url_host(webhook.url), "dead")


def url_host(url: str) -> str:
    """What is shown of a url in logs: a path may hold a secret."""
    return urlsplit(url).netloc
