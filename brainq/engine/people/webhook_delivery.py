"""Sends webhooks about endings, approvals and budgets over HTTP: signed, at least once.

    event ─ same transaction ─► a pending row a webhook ─► WebhookSender, threads in the finalizer pool
                                                                │
              row: done, or due again, or dead with its error ◄── POST, signed

The rows are jobs in SQL (`brainq/engine/jobs.py`). Redis and Celery have no part in them."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from brainq.contracts.turn import TurnRequest
from brainq.contracts.webhook import DeliveryClaim, Webhook
from brainq.engine.jobs import Backoff, JobRunner, TryFailed, delivery_key
from brainq.engine.people.webhook_post import post
from brainq.engine.people.webhook_signature import message_body, message_headers
from brainq.runtime.observe.logs import OutageLog, logger
from brainq.runtime.observe.metrics import catalogue as m
from brainq.runtime.observe.metrics.counters import COUNTERS
from brainq.runtime.observe.spans import webhook_span
from brainq.runtime.observe.threads import KeptThread
from brainq.runtime.observe.tracing import fail_span, in_span, traceparent_of, tracer

if TYPE_CHECKING:
    from brainq.adapters.sql.repositories.deliveries import Deliveries

log = logger("brainq.webhooks")
LATER = Backoff(first_s=5.0, factor=3.0, longest_s=6 * 3600.0, spread=(0.75, 1.25))
MAX_TRIES = 12  # the last one is 17 to 28 hours after the first, depending on the jitter
POLL_S = 1.0
LEASE_S = 60.0  # longer than a POST may take; a delivery whose process died is sent again after it
THREADS = 4
GRACE_S = 4.0  # a worker waits at most 5 s for its threads


@dataclass(eq=False, kw_only=True)
class WebhookSender:
    """A sender of webhooks. Any number of processes may send. Each webhook has its own threads, so a webhook that hangs
    delays no other.

    every_s      how often it looks for due deliveries
    lease_s      how long a claim keeps other processes from a delivery
    threads      deliveries to one webhook at a time, in this process
    request_of   returns a turn's request, for its trace; None if SQL no longer has it
    """

    webhooks: Sequence[Webhook]
    rows: Deliveries
    post: Callable[[str, bytes, Mapping[str, str]], str] = post
    every_s: float = POLL_S
    lease_s: float = LEASE_S
    threads: int = THREADS
    max_tries: int = MAX_TRIES
    grace_s: float = GRACE_S
    request_of: Callable[[str], TurnRequest | None] = lambda turn_id: None

    def run(self, stopping: threading.Event) -> None:
        """Send until stopped. Deliveries under way then have `grace_s` to end; later ones are left to their lease."""
        over = threading.Event()
        places: list[KeptThread] = []
        for webhook in self.webhooks:
            serve = partial(self._serve, webhook, OutageLog(log, f"webhooks to {url_host(webhook.url)}"))
            places += [KeptThread("brainq-webhook", serve, over) for _ in range(self.threads)]
        try:
            while True:
                for place in places:
                    with suppress(RuntimeError):  # a refused thread is logged and tried again; the others send
                        place.ensure()
                if stopping.wait(self.every_s):
                    return
        finally:
            over.set()  # whatever ended this: it is run again, with new threads
            until = time.monotonic() + self.grace_s
            for place in places:
                place.stop(max(0.0, until - time.monotonic()))

    def send_one(self, webhook: Webhook) -> bool:
        """Try the delivery that has been due longest. Returns False if none is due."""
        delivery = self.rows.claim(webhook.url, self.lease_s)
        if delivery is None:
            return False
        host = url_host(webhook.url)
        jobs = JobRunner(rows=self.rows, lease_s=self.lease_s, backoff=LATER, max_tries=self.max_tries)
        did = jobs.run(delivery_key(delivery.row), delivery.tries, lambda: self._send(webhook, delivery))
        if did == "dead":
            log.warning("delivery to a webhook is dead", turn_id=delivery.turn_id, delivery=delivery.row, host=host)
        COUNTERS.add(m.DELIVERIES, host, "again" if did == "failed" else did)
        return True

    def _send(self, webhook: Webhook, delivery: DeliveryClaim) -> str:
        why = self._post(webhook, delivery, message_body(delivery))
        if why:
            raise TryFailed(why)
        self.rows.done(delivery.row)
        return "done"

    def _post(self, webhook: Webhook, delivery: DeliveryClaim, body: bytes) -> str:
        """Post the delivery, as `post` does. If telemetry is on, the receiver can continue the turn's trace."""
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
        stopping.wait(random.random() * self.every_s)  # the threads look one after another
        while not stopping.is_set():
            sent = False
            try:
                sent = self.send_one(webhook)
            except Exception as failure:  # SQL does not answer
                outage.failed(failure)
            else:
                outage.worked()
            if not sent:
                stopping.wait(self.every_s)


def url_host(url: str) -> str:
    """Return what logs may show of a url. Its path may hold a secret."""
    return urlsplit(url).netloc
