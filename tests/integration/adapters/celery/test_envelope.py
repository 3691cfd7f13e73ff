"""Our doorbell against the one Celery itself would send, and through a real worker."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from brainq.adapters.celery import envelope as doorbell
from brainq.adapters.celery.app import make_app
from brainq.adapters.celery.names import CALL_RUN, READ_ONLY_QUEUE, TURN_ADVANCE, TURNS_QUEUE, queue_key
from tests.integration.adapters.celery.worker import listening_app, ring, running, settings_for, watching
from tests.support.server import RedisServer
from tests.support.wait import wait_until

FILL = r"""
local text = ARGV[1]
local function put(name, value) text = text:gsub('%%' .. name .. '%%', (value:gsub('%%', '%%%%'))) end
put('ARGS', (cjson.encode({ARGV[2], ARGV[3], tonumber(ARGV[4])}):gsub('"', '\\"')))
put('ARGSREPR', "('" .. ARGV[2] .. "', '" .. ARGV[3] .. "', " .. ARGV[4] .. ")")
put('TASK_ID', ARGV[5])
put('ROOT_ID', ARGV[3])
put('TAG', ARGV[5] .. ':1')
redis.call('LPUSH', KEYS[1], text)
return text
"""


def pop(server: RedisServer, key: str) -> dict[str, Any]:
    (item,) = server.command("RPOP", key)
    return json.loads(item)


@pytest.mark.parametrize("prefix", ["bq:", "other-app:"])
def test_the_envelope_is_the_one_celery_sends_but_for_the_documented_differences(
    redis_server: RedisServer, redis_url: str, prefix: str
) -> None:
    settings = settings_for(redis_url, prefix=prefix)
    app = make_app(settings)
    app.send_task(
        CALL_RUN,
        ("s1", "t1", "c1-0", 1),
        task_id="t1.c1-0.1",
        root_id="t1",
        queue=READ_ONLY_QUEUE,
        ignore_result=True,
        shadow="brainq.call.run:find",
    )
    app.close()
    key = queue_key(settings, READ_ONLY_QUEUE)
    assert redis_server.keys() == [key]  # nothing was bound: the default exchange needs no binding
    theirs = pop(redis_server, key)
    ours = json.loads(doorbell.envelope(CALL_RUN, ("s1", "t1", "c1-0", 1), "t1.c1-0.1", READ_ONLY_QUEUE, "t1", "find"))

    assert theirs["properties"].pop("body_encoding") == "base64"
    assert json.loads(ours.pop("body")) == json.loads(base64.b64decode(theirs.pop("body")))
    for message in (theirs, ours):
        assert message["headers"].pop("origin")
        assert message["properties"].pop("delivery_tag")
        message["properties"].pop("reply_to")
    assert ours == theirs


def test_a_worker_runs_our_doorbells_and_its_events_show_the_ids(redis_server: RedisServer, redis_url: str) -> None:
    settings = settings_for(redis_url)
    app, heard = listening_app(settings)
    bell = doorbell.envelope(TURN_ADVANCE, ("s1", "t1", 7), "t1.7", TURNS_QUEUE, "t1")
    with running(app), watching(app) as events:
        ring(redis_server, settings, bell)
        wait_until(lambda: "task-succeeded" in events, "the doorbell's events arrive")
    assert heard.bells == [("s1", "t1", 7)]
    received = events["task-received"]
    assert (received["uuid"], received["root_id"], received["name"]) == ("t1.7", "t1", TURN_ADVANCE)
    assert received["args"] == "('s1', 't1', 7)"


def test_a_lua_script_fills_the_template_to_the_same_text(redis_server: RedisServer, redis_url: str) -> None:
    settings = settings_for(redis_url)
    key = queue_key(settings, TURNS_QUEUE)
    template = doorbell.template(TURN_ADVANCE, TURNS_QUEUE)
    (text,) = redis_server.command("EVAL", FILL, "1", key, template, "s:a@b.c", "t1", "7", "t1.7")
    ours = json.loads(doorbell.envelope(TURN_ADVANCE, ("s:a@b.c", "t1", 7), "t1.7", TURNS_QUEUE, "t1"))
    filled = json.loads(text)
    assert filled["properties"].pop("delivery_tag") == "t1.7:1"
    ours["properties"].pop("delivery_tag")
    assert filled == ours
    app, heard = listening_app(settings)
    with running(app):
        wait_until(lambda: heard.bells == [("s:a@b.c", "t1", 7)], "the doorbell a script rang runs")
