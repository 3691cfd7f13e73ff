"""P13: no prompt, argument, result or secret is in a message, an event, a log, or on a Flower page."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from brainq.adapters.celery.app import make_app
from brainq.app.devserver.ports import free_port
from brainq.errors import TurnRejected
from tests.support.brains.diary import notes, open_gate, order
from tests.support.brains.obedient import script
from tests.support.foreign import push_with_kombu
from tests.support.wait import wait_until
from tests.support.wiretap import Wiretap
from tests.support.world import ROOT, World

CANARY = "canary7Kq2secret"


@pytest.fixture
def flower(calm: World, tmp_path: Path) -> Iterator[str]:
    """A Flower with the configuration of `ops/`, on a free port of loopback."""
    port = free_port()
    log = (tmp_path / "flower.log").open("wb")
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "celery", "-A", "brainq.workers.coordinator", "flower"),
            *(f"--conf={ROOT / 'brainq/workers/flowerconfig.py'}", f"--port={port}"),
        ],
        env={**os.environ, **calm.environment},
        cwd=ROOT,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        # It answers before it listens to events, and what it did not hear it never shows.
        wait_until(lambda: heard_of(url) >= len(calm.fleet.workers), "flower hears all workers", every_s=0.1)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        log.close()
        assert CANARY not in (tmp_path / "flower.log").read_text()


def heard_of(flower: str) -> int:
    """How many workers' events have come."""
    told = fetch(f"{flower}/workers?json=1")
    return len(json.loads(told)["data"]) if told.startswith("{") else 0


def fetch(url: str) -> str:
    """A page's text, or `status <n>` for a page that is refused."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return f"status {error.code}"
    except OSError:
        return ""


def work_with_secrets(world: World, sid: str) -> list[str]:
    """Turns that hold the canary everywhere; their ids."""
    name = f"{CANARY}-{sid}"
    order("turn_end.raise", "1")
    order("secret", CANARY)
    message = script(
        [
            ("read", {"name": name}),
            ("write", {"name": name, "gate": sid}),
            ("read", {"name": f"{name}-2", "fail": True}),
            ("no_such_tool", {"secret": CANARY}),
            ("read", CANARY + "{"),
        ],
        final=f"the answer is {CANARY}",
    )
    handle = world.client.submit(
        sid,
        message,
        system_prompt=f"Never say {CANARY}.",
        skill_context=f"skill {CANARY}",
        metadata={"note": CANARY},
        show_citations=True,
        prompt_tags=[CANARY],
    )
    wait_until(lambda: notes("start", turn=handle.turn_id, tool="write"), "the write runs")
    inspected = make_app(world.settings).control.inspect(timeout=1.0)

    def active() -> str:
        return str(inspected.active())

    wait_until(lambda: handle.turn_id in active(), "the running call is inspected")
    assert CANARY not in active() + str(inspected.reserved()) + str(inspected.stats())
    open_gate(sid)
    assert CANARY in handle.result(timeout_s=60).text
    broken = world.client.submit(f"{sid}-b", script(final=CANARY, fail="server"))
    broken.result(timeout_s=60)

    foreign = f"foreign-{sid}"
    fields = {"turn_id": foreign, "session_id": f"{sid}-f", "user_message": script(final=CANARY)}
    shown = f"({CANARY},)"
    push_with_kombu(world.redis.url, fields, argsrepr=shown, kwargsrepr=f"{{'user_message': '{CANARY}'}}")
    wait_until(lambda: world.wiring.store.turns.get(foreign), "the foreign turn was accepted")
    assert CANARY in world.client.handle(foreign).result(timeout_s=60).text
    refused = f"refused-{sid}"
    push_with_kombu(
        world.redis.url,
        {**fields, "turn_id": refused, "limits": CANARY, CANARY: CANARY},
        argsrepr=shown,
        kwargsrepr=shown,
    )
    wait_until(lambda: world.wiring.store.turns.get(refused), "the refused turn was written down")
    with pytest.raises(TurnRejected):
        world.client.handle(refused).result(timeout_s=60)
    for turn in (handle, broken, world.client.handle(foreign)):
        world.done(turn)
    return [handle.turn_id, broken.turn_id, foreign]


def test_secrets_stay_out_of_messages_events_and_logs(calm: World, sid: str) -> None:
    try:
        with Wiretap(calm.redis.url) as wire:
            turns = work_with_secrets(calm, sid)
            # Events are sent in batches; the last ones come with the worker's next heartbeat.
            wait_until(lambda: wire.holds("PUBLISH", "task-succeeded", turns[0]), "the events were published")
            received = ("PUBLISH", "task-received", "brainq.turn.submit")
            wait_until(lambda: wire.holds(*received), "the event of the foreign submit was published")
    finally:
        for path in calm.directory.glob("order-*"):
            path.unlink()
    assert wire.holds("LPUSH", "bq:brainq.finalize", turns[0]), "no doorbell was seen"
    with_content = wire.holds(CANARY)
    foreign = [line for line in with_content if "LPUSH" in line and "brainq.turn.submit" in line]
    assert len(foreign) == 2, "the producer's own messages"
    assert with_content == foreign
    logs = {worker.name: worker.log_path.read_text() for worker in calm.fleet.workers}
    assert "brainq.turn.submit" in logs["coordinator"], "the log is not at INFO"
    assert "in _called_back" in logs["finalizer"], "the log is not at DEBUG: it shows no frames"
    assert [name for name, text in logs.items() if CANARY in text] == []


@pytest.mark.full
def test_secrets_stay_out_of_logs_while_things_fail(stormy: World, sid: str) -> None:
    """Redis refuses writes, SQL is locked, and a worker is killed, while turns hold the canary; logs are JSON."""
    order("secret", CANARY)
    order("turn_end.raise", "2")
    steps = [("read", {"name": CANARY, "gate": sid}), ("write", {"name": CANARY})]
    handle = stormy.client.submit(sid, script(steps, final=CANARY), metadata={"note": CANARY})
    begun = wait_until(lambda: notes("start", turn=handle.turn_id), "the read runs")[0]
    stormy.kill_the("parallel", begun["pid"])
    lock = sqlite3.connect(stormy.sql_url.removeprefix("sqlite:///"), timeout=30, isolation_level=None)
    stormy.redis.command("SCRIPT", "FLUSH")
    stormy.redis.command("CONFIG", "SET", "maxmemory", "1")
    try:
        lock.execute("BEGIN IMMEDIATE")
        open_gate(sid)
        for name in ("coordinator1", "coordinator2"):
            path = stormy.directory / "workers" / f"{name}.log"
            wait_until(lambda p=path: "OutOfMemory" in p.read_text(), "Redis refused a worker", 30)
    finally:
        stormy.redis.command("CONFIG", "SET", "maxmemory", "0")
        lock.execute("ROLLBACK")
        lock.close()
    assert handle.result(timeout_s=60).text == CANARY
    stormy.done(handle)
    logs = {worker.name: worker.log_path.read_text() for worker in stormy.fleet.workers}
    assert any(
        line.startswith('{"') and "in _called_back" in line for text in logs.values() for line in text.splitlines()
    )
    assert [name for name, text in logs.items() if CANARY in text] == []


@pytest.mark.full
def test_flower_shows_no_secret(calm: World, sid: str, flower: str) -> None:
    try:
        turns = work_with_secrets(calm, sid)
    finally:
        for path in calm.directory.glob("order-*"):
            path.unlink()
    wait_until(lambda: turns[2] in table(flower), "flower has seen the last turn", every_s=0.2)
    # What failed is seen there, by the name of its tool. An event of one worker may come after a later one of another.
    wanted = {
        ("brainq.call.run:read", "FAILURE"),
        ("brainq.turn.advance", "FAILURE"),
        ("brainq.call.run:write", "SUCCESS"),
    }
    wait_until(lambda: wanted <= states(flower), "flower has seen how calls and turns ended", every_s=0.2)
    rows = table(flower)
    assert "brainq.turn.submit" in rows
    counted = [line for line in fetch(f"{flower}/metrics").splitlines() if 'type="task-failed"' in line]
    assert any('task="brainq.call.run:read"' in line for line in counted)
    pages = {
        name: fetch(f"{flower}{name}")
        for name in ("/workers", "/tasks", "/broker", "/metrics", "/api/tasks", "/api/workers")
    }
    ids = [word for word in rows.replace('"', " ").split() if word.startswith(tuple(turns))][:30]
    ids += task_ids(rows)
    assert ids
    for task in dict.fromkeys(ids):
        pages[task] = fetch(f"{flower}/task/{task}")
    for worker in calm.fleet.workers:
        name = worker.arguments[worker.arguments.index("-n") + 1].replace("%h", os.uname().nodename)
        pages[name] = fetch(f"{flower}/worker/{name}")
    assert any("(hidden)" in page for page in pages.values()), "the foreign submit's page was not fetched"
    assert [name for name, page in {**pages, "table": rows}.items() if CANARY in page] == []


def states(flower: str) -> set[tuple[str, str]]:
    return {(row["name"], row["state"]) for row in json.loads(table(flower))["data"]}


def table(flower: str) -> str:
    """The rows behind Flower's task page."""
    columns = "&".join(
        f"columns[{n}][data]={name}" for n, name in enumerate(("name", "uuid", "state", "args", "kwargs"))
    )
    query = f"draw=1&start=0&length=500&search[value]=&order[0][column]=0&order[0][dir]=asc&{columns}"
    return fetch(f"{flower}/tasks/datatable?{query}")


def task_ids(rows: str) -> list[str]:
    """The ids of foreign submits, which are the producer's own."""
    return [row["uuid"] for row in json.loads(rows)["data"] if row["name"] == "brainq.turn.submit"]
