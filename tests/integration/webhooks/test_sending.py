"""What is sent to a real receiver, and what becomes of it when that fails, hangs or answers otherwise."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import text

from brainq.adapters.sql.store import Store
from brainq.contracts.webhook import DeliveryRow, NewDelivery, Webhook, parse_webhooks
from brainq.engine.people.webhook_delivery import WebhookSender
from brainq.engine.people.webhook_post import post
from brainq.runtime.observe import threads as kept
from brainq.runtime.observe.tracing import turn_context
from tests.support.pump import sqlite_url
from tests.support.receiver import Receiver
from tests.support.refused_threads import RefusedThreads
from tests.support.spans import recording
from tests.support.wait import wait_until


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(sqlite_url(tmp_path), migrate=False) as opened:
        yield opened


def plan(store: Store, url: str, *turns: str) -> None:
    rows = [NewDelivery(f"msg_{turn}", url, "turn.ended", "s1", turn, '{"turn_id": "x"}') for turn in turns]
    with store.database.transaction() as connection:
        store.deliveries.plan(connection, rows)


def lapse(store: Store) -> None:
    """All leases and waits are over."""
    with store.engine.connect() as connection:
        connection.execute(text("UPDATE deliveries SET due_at = created_at"))


def only(store: Store) -> DeliveryRow:
    (row,) = store.deliveries.list()
    return row


def sender(store: Store, receiver: Receiver, **more: object) -> tuple[WebhookSender, Webhook]:
    webhooks = parse_webhooks(receiver.setting())
    return WebhookSender(webhooks=webhooks, rows=store.deliveries, **more), webhooks[0]  # pyright: ignore[reportArgumentType]


def test_a_delivery_is_signed_and_done(store: Store) -> None:
    with Receiver() as receiver:
        plan(store, receiver.url, "t1")
        made, webhook = sender(store, receiver)
        assert made.send_one(webhook) is True
        assert made.send_one(webhook) is False
    (got,) = receiver.received
    assert got.signed
    assert got.path == "/hook?from=brainq"
    assert (got.message_id, got.content["type"], got.content["data"]) == ("msg_t1", "turn.ended", {"turn_id": "x"})
    assert abs(int(got.headers["webhook-timestamp"]) - time.time()) < 60
    assert (only(store).state, only(store).tries, only(store).error) == ("done", 1, None)


def test_a_delivery_is_in_its_turns_trace_and_hands_it_on(store: Store) -> None:
    with recording() as recorder, Receiver(lambda n: 500 if n < 2 else 200) as receiver:
        plan(store, receiver.url, "t1")
        made, webhook = sender(store, receiver)
        made.send_one(webhook)
        lapse(store)
        made.send_one(webhook)
        refused, taken = recorder.spans.named("brainq.webhook")
    turn = turn_context(taken.attributes["brainq.turn.id"], None, lambda trace_id: True)
    assert (taken.trace_id, taken.parent_id) == (turn.trace_id, turn.span_id)
    assert [refused.is_error, taken.is_error] == [True, False]
    assert receiver.received[-1].headers["traceparent"] == f"00-{taken.trace_id:032x}-{taken.span_id:016x}-01"
    assert "/hook" not in recorder.text()


def test_what_is_refused_is_sent_again_under_its_id(store: Store) -> None:
    with Receiver(lambda n: 500 if n < 3 else 200) as receiver:
        plan(store, receiver.url, "t1")
        made, webhook = sender(store, receiver)
        for error in ("HTTP 500", "HTTP 500", None):
            assert made.send_one(webhook) is True
            assert (only(store).error, only(store).state) == (error, "pending" if error else "done")
            if error:
                assert made.send_one(webhook) is False, "its next try is not due yet"
            lapse(store)
    assert [got.message_id for got in receiver.received] == ["msg_t1"] * 3
    assert len({got.body for got in receiver.received}) == 1
    assert all(got.signed for got in receiver.received)


def test_what_is_never_taken_is_dead_and_can_be_sent_again(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    with Receiver(lambda n: 503 if n < 4 else 200) as receiver:
        plan(store, receiver.url, "t1")
        made, webhook = sender(store, receiver, max_tries=3)
        for _ in range(3):
            made.send_one(webhook)
            lapse(store)
        assert (only(store).state, only(store).error, only(store).tries) == ("dead", "HTTP 503", 3)
        assert made.send_one(webhook) is False
        assert "hook?from" not in caplog.text
        assert store.deliveries.revive(int(only(store).row)) is True
        assert store.deliveries.revive(int(only(store).row)) is False
        assert made.send_one(webhook) is True
    assert only(store).state == "done"
    assert {got.message_id for got in receiver.received} == {"msg_t1"}


def test_a_redirect_is_not_followed(store: Store) -> None:
    with Receiver(lambda _: 307) as receiver:
        plan(store, receiver.url, "t1")
        made, webhook = sender(store, receiver)
        made.send_one(webhook)
    assert only(store).error == "HTTP 307; redirects are not followed, give the url it leads to"
    assert [got.path for got in receiver.received] == ["/hook?from=brainq"]


def test_a_receiver_that_hangs_is_left(store: Store) -> None:
    with Receiver(lambda _: -1) as receiver:
        plan(store, receiver.url, "t1")
        made, webhook = sender(store, receiver, post=partial(post, answer_s=0.2))
        made.send_one(webhook)
    assert only(store).error == "no answer within 0.2 s"
    assert only(store).state == "pending"


def test_an_answer_that_drips_is_cut_at_the_same_time() -> None:
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            client, _ = server.accept()
            with client:
                client.recv(65536)
                while not stop.wait(0.02):
                    try:
                        client.sendall(b"H")  # never slow enough for a socket's own timeout
                    except OSError:
                        return

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        said = post(f"http://127.0.0.1:{server.getsockname()[1]}/", b"{}", {}, answer_s=0.3)
        stop.set()
        thread.join(5)
    assert said == "no answer within 0.3 s"


def test_nobody_there_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert post(f"http://127.0.0.1:{port}/", b"{}", {}).startswith("ConnectionRefusedError")
    assert "SSL" in _tls_to_plain()


def _tls_to_plain() -> str:
    with Receiver() as receiver:
        return post(receiver.url.replace("http:", "https:"), b"{}", {})


def test_a_webhook_that_hangs_holds_up_no_other(store: Store) -> None:
    stop = threading.Event()
    with Receiver(lambda _: -1) as stuck, Receiver() as well:
        plan(store, stuck.url, "t1", "t2", "t3")
        plan(store, well.url, "t1", "t2", "t3")
        webhooks = (*parse_webhooks(stuck.setting()), *parse_webhooks(well.setting()))
        made = WebhookSender(webhooks=webhooks, rows=store.deliveries, threads=2, every_s=0.05, grace_s=0)
        thread = threading.Thread(target=made.run, args=(stop,), daemon=True)
        thread.start()
        wait_until(lambda: len(stuck.received) == 2 and len(well.received) == 3, "both were tried")
        assert sorted(got.message_id for got in well.received) == ["msg_t1", "msg_t2", "msg_t3"]
        stop.set()
        thread.join(5)
        stuck.let_go.set()
        wait_until(
            lambda: (
                {row.state for row in store.deliveries.list() if row.url == well.url} == {"done"}
                and [row.error is None for row in store.deliveries.list() if row.url == stuck.url].count(False) == 2
            ),
            "all that was on its way has ended",
        )


def test_what_is_on_its_way_ends_before_its_worker_does(store: Store) -> None:
    stop = threading.Event()
    with Receiver(lambda _: -1) as receiver:
        plan(store, receiver.url, "t1")
        made, _ = sender(store, receiver, threads=1, every_s=0.05)
        thread = threading.Thread(target=made.run, args=(stop,), daemon=True)
        thread.start()
        wait_until(lambda: receiver.received, "it is on its way")
        stop.set()
        receiver.let_go.set()
        thread.join(10)
        assert not thread.is_alive()
        assert only(store).error is not None, "its answer came, and was written down"


WORKER = """
import sys, threading
from brainq.contracts.webhook import parse_webhooks
from brainq.adapters.sql.store import Store
from brainq.engine.people.webhook_delivery import WebhookSender
with Store.open(sys.argv[1], migrate=False) as store:
    sender = WebhookSender(webhooks=parse_webhooks(sys.argv[2]), rows=store.deliveries, lease_s=60.0, every_s=0.05)
    sender.run(threading.Event())
"""


def test_a_worker_that_is_killed_in_the_middle_leaves_its_delivery_to_the_next(store: Store, tmp_path: Path) -> None:
    with Receiver(lambda n: -1 if n == 1 else 200) as receiver:
        plan(store, receiver.url, "t1")
        worker = subprocess.Popen(
            [sys.executable, "-c", WORKER, f"sqlite:///{tmp_path / 'brainq.db'}", receiver.setting()]
        )
        try:
            wait_until(lambda: len(receiver.received) == 1, "it is in the middle of its POST")
        finally:
            os.kill(worker.pid, signal.SIGKILL)
        assert worker.wait(10) == -signal.SIGKILL
        assert (only(store).state, only(store).tries) == ("pending", 1)
        lapse(store)
        made, webhook = sender(store, receiver)
        assert made.send_one(webhook)
    assert [got.message_id for got in receiver.received] == ["msg_t1", "msg_t1"]
    assert (only(store).state, only(store).tries) == ("done", 2)


def test_one_whose_workers_all_die_is_dead(store: Store) -> None:
    with Receiver() as receiver:
        plan(store, receiver.url, "t1")
        made, webhook = sender(store, receiver, max_tries=2)
        for _ in range(2):
            assert store.deliveries.claim(webhook.url, 60.0) is not None
            lapse(store)
        made.send_one(webhook)
    assert receiver.received == []
    assert only(store).state == "dead"
    assert "its worker died" in (only(store).error or "")


def test_sql_that_is_away_is_waited_for(store: Store) -> None:
    with Receiver() as receiver:
        plan(store, receiver.url, "t1")
        stop, failed = threading.Event(), threading.Event()

        class Rows:
            def __getattr__(self, name: str) -> object:
                def call(*values: object) -> object:
                    try:
                        return getattr(store.deliveries, name)(*values)
                    except Exception:
                        failed.set()
                        raise

                return call

        with store.engine.connect() as connection:
            connection.exec_driver_sql("ALTER TABLE deliveries RENAME TO away")
        made = WebhookSender(webhooks=parse_webhooks(receiver.setting()), rows=Rows(), threads=1, every_s=0.02)  # pyright: ignore[reportArgumentType]
        thread = threading.Thread(target=made.run, args=(stop,), daemon=True)
        thread.start()
        assert failed.wait(10), "SQL was not away"
        with store.engine.connect() as connection:
            connection.exec_driver_sql("ALTER TABLE away RENAME TO deliveries")
        wait_until(lambda: [row.state for row in store.deliveries.list()] == ["done"], "it was sent")
        stop.set()
        thread.join(5)


def test_a_refused_thread_is_tried_again_and_there_are_never_more_places(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "REFUSED_PAUSES_S", ())
    refused = RefusedThreads(monkeypatch, "brainq-webhook", 2)
    stop = threading.Event()
    with Receiver() as receiver:
        made, _ = sender(store, receiver, threads=4, every_s=0.02)
        thread = threading.Thread(target=made.run, args=(stop,), daemon=True)
        thread.start()
        wait_until(lambda: _places() == 4, "all places are taken")
        wait_until(lambda: refused.asked == 6, "the refused ones were tried again")
        plan(store, receiver.url, "t1")
        wait_until(lambda: receiver.received, "they send")
        assert _places() == 4
        stop.set()
        thread.join(60)
        wait_until(lambda: _places() == 0, "all have ended")


def test_a_sender_that_fails_leaves_no_places_beside_those_of_its_next_run(store: Store) -> None:
    class Exits(threading.Event):
        """Ends the sender in its wait."""

        def wait(self, timeout: float | None = None) -> bool:
            raise SystemExit

    with Receiver() as receiver:
        made, _ = sender(store, receiver, threads=4, every_s=0.02)
        for _ in range(3):
            with pytest.raises(SystemExit):
                made.run(Exits())
        wait_until(lambda: _places() == 0, "all have ended")


def _places() -> int:
    return [thread.name for thread in threading.enumerate()].count("brainq-webhook")
