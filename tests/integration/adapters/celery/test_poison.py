"""What no worker could accept goes to the poison list, and the worker goes on."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from brainq.adapters.celery.app import make_app
from brainq.adapters.celery.celery57.transport import SAVED_ITEMS, check_item
from brainq.adapters.celery.envelope import envelope
from brainq.adapters.celery.names import POISON_LIST, TURN_ADVANCE, TURNS_QUEUE, queue_key
from tests.integration.adapters.celery.worker import listening_app, quarantined, ring, running, settings_for
from tests.support.server import RedisServer
from tests.support.wait import wait_until


def good(number: int) -> str:
    return envelope(TURN_ADVANCE, ("s1", "t1", number), f"t1.{number}", TURNS_QUEUE, "t1")


def changed(change: Callable[[dict[str, Any]], object]) -> str:
    message = json.loads(good(0))
    change(message)
    return json.dumps(message)


BAD = {
    "not JSON": "not json {",
    "not UTF-8 JSON": '"\\ud800',
    "nested too deeply": "[" * 100_000,
    "a JSON list": "[1, 2]",
    "a JSON number": "7",
    "no properties": changed(lambda m: m.pop("properties")),
    "properties is a list": changed(lambda m: m.update(properties=[])),
    "no headers": changed(lambda m: m.pop("headers")),
    "broken base64": changed(lambda m: (m["properties"].update(body_encoding="base64"), m.update(body="%%"))),
    "unknown body encoding": changed(lambda m: m["properties"].update(body_encoding="rot13")),
    "body is missing": changed(lambda m: m.pop("body")),
    "pickle": changed(lambda m: m.update({"content-type": "application/x-python-serialize"})),
    "compressed": changed(lambda m: m["headers"].update(compression="zlib")),
    "no such task": changed(lambda m: m["headers"].update(task="brainq.no.such")),
    "a built-in task": changed(lambda m: m["headers"].update(task="celery.map")),
    "no id": changed(lambda m: m["headers"].pop("id")),
    "id is a number": changed(lambda m: m["headers"].update(id=7)),
    "body is not JSON": changed(lambda m: m.update(body="{")),
    "body is an object": changed(lambda m: m.update(body='{"args": []}')),
    "body is too short": changed(lambda m: m.update(body="[[], {}]")),
    "kwargs is a text": changed(lambda m: m.update(body='[[], "x", {}]')),
    "a chain": changed(lambda m: m.update(body='[[], {}, {"chain": [{"task": "celery.map"}]}]')),
    "bad eta": changed(lambda m: m["headers"].update(eta="tomorrow")),
    "bad expires": changed(lambda m: m["headers"].update(expires={"a": 1})),
    "a line feed in the id": changed(lambda m: m["headers"].update(id="t1\n[ERROR] forged")),
    "an id of a megabyte": changed(lambda m: m["headers"].update(id="x" * 1_000_000)),
    "half a character in the body": changed(lambda m: m.update(body="\ud800")),
    "a countdown": changed(lambda m: m["headers"].update(eta="2099-01-01T00:00:00+00:00")),
    "protocol 1": changed(lambda m: m.update(headers={}, body='{"task": "brainq.turn.advance", "id": "x"}')),
}


def test_a_worker_outlives_every_bad_item_and_runs_the_good_ones_behind(
    redis_server: RedisServer, redis_url: str
) -> None:
    settings = settings_for(redis_url)
    app, heard = listening_app(settings)
    items = [item for number, bad in enumerate(BAD.values()) for item in (bad, good(number))]
    with running(app) as worker:
        connections = worker.consumer.restart_count
        for start in range(0, len(items), 20):
            ring(redis_server, settings, *items[start : start + 20])
        wait_until(lambda: len(heard.bells) == len(BAD), "every good message behind a bad one runs")
        wait_until(lambda: len(quarantined(redis_server, settings)) == len(BAD), "every bad item is kept")
        assert worker.consumer.restart_count == connections  # it did not even reconnect
    assert sorted(heard.bells) == [("s1", "t1", number) for number in range(len(BAD))]
    assert redis_server.command("LLEN", queue_key(settings, TURNS_QUEUE)) == ["0"]
    notes = quarantined(redis_server, settings)
    assert all(note["reason"] and note["queue"] == TURNS_QUEUE and note["item"] for note in notes)
    (expires_in_s,) = redis_server.command("TTL", settings.prefix + POISON_LIST)
    assert 6 * 86400 < int(expires_in_s) <= 7 * 86400


def test_null_kwargs_and_a_constant_delivery_tag_are_put_right(redis_server: RedisServer, redis_url: str) -> None:
    settings = settings_for(redis_url)
    app, heard = listening_app(settings)

    def as_foreign_producers_send(number: int) -> str:
        message = json.loads(good(number))
        message["headers"].update(shadow="another.name", timelimit=["soon"])
        body = json.dumps([["s1", "t1", number], None, None])
        message["body"] = base64.b64encode(body.encode()).decode()
        message["properties"] = {
            "body_encoding": "base64",
            "delivery_tag": "always-the-same",
            "delivery_info": {"exchange": "", "routing_key": "elsewhere"},
        }
        return json.dumps(message)

    with running(app) as worker:
        ring(redis_server, settings, *(as_foreign_producers_send(number) for number in range(20)))
        wait_until(lambda: len(heard.bells) == 20, "all messages with one tag run")
        qos = worker.consumer.task_consumer.channel.qos
        wait_until(lambda: len(qos._delivered) - len(qos._dirty) <= 0, "every message is accounted for")
    assert sorted(heard.bells) == [("s1", "t1", number) for number in range(20)]
    assert quarantined(redis_server, settings) == []


def test_the_poison_list_is_capped(redis_server: RedisServer, redis_url: str) -> None:
    settings = settings_for(redis_url)
    with make_app(settings).connection_for_write() as connection:
        channel = connection.default_channel
        for number in range(SAVED_ITEMS + 5):
            channel.quarantine(f"reason {number}", TURNS_QUEUE, b"\xff" * 20_000 if number == 1004 else b"x")
    notes = quarantined(redis_server, settings)
    assert len(notes) == SAVED_ITEMS
    assert (notes[0]["reason"], notes[-1]["reason"]) == ("reason 5", "reason 1004")
    assert len(notes[-1]["item"]) < 20_000


def test_an_unfinished_message_returns_to_its_own_queue_and_is_good_again(
    redis_server: RedisServer, redis_url: str
) -> None:
    settings = settings_for(redis_url)
    app = make_app(settings)
    taken: list[Any] = []
    ring(redis_server, settings, changed(lambda m: m["properties"]["delivery_info"].update(routing_key="x")))
    with app.connection_for_read() as connection:
        consumer = app.amqp.Consumer(
            connection.channel(), queues=[app.amqp.queues[TURNS_QUEUE]], on_message=taken.append
        )
        with consumer:
            connection.drain_events(timeout=5)
        consumer.channel.close()
    app.close()
    assert len(taken) == 1
    assert redis_server.keys() == [queue_key(settings, TURNS_QUEUE)]
    (item,) = redis_server.command("RPOP", queue_key(settings, TURNS_QUEUE))
    assert json.loads(check_item(item, TURNS_QUEUE)["body"])[0] == ["s1", "t1", 0]


def test_a_reason_quotes_nothing_of_the_item(
    redis_server: RedisServer, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_for(redis_url)
    app, heard = listening_app(settings)
    bad_body = changed(lambda m: m.update(body='["canary-7d1f"]'))
    with running(app, loglevel="DEBUG"):
        ring(redis_server, settings, '{"headers": {}, "body": "canary-7d1f"}', bad_body, good(1))
        wait_until(lambda: heard.bells, "the message behind runs")
    assert len(quarantined(redis_server, settings)) == 2
    assert caplog.text.count("was quarantined") == 2
    assert "canary-7d1f" not in caplog.text


def test_what_redis_refuses_to_take_is_kept_until_it_takes_it(redis_server: RedisServer, redis_url: str) -> None:
    """Such as a Redis that is full; here its list cannot be written to."""
    settings = settings_for(redis_url)
    app, heard = listening_app(settings)
    redis_server.command("SET", settings.prefix + POISON_LIST, "no list")
    with running(app):
        ring(redis_server, settings, "not json {", "[1, 2]", good(1))
        wait_until(lambda: len(heard.bells) == 1, "the worker goes on")
        redis_server.command("DEL", settings.prefix + POISON_LIST)
        wait_until(lambda: len(quarantined(redis_server, settings)) == 2, "they were written down")
    assert {note["item"] for note in quarantined(redis_server, settings)} == {"not json {", "[1, 2]"}
