"""Every producer of docs/wires/producers.md, run as the page has it, reaches a real worker."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from celery import Celery

from brainq.adapters.celery.app import make_app
from brainq.adapters.celery.names import COORDINATOR_QUEUES
from brainq.workers.tasks.register import coordinator_tasks
from tests.integration.adapters.celery.worker import running
from tests.support.gateways import GatewayThread
from tests.support.pump import Pump
from tests.support.wait import wait_until

PAGE = Path(__file__).parents[3] / "docs" / "wires" / "producers.md"
URL_OF_THE_PAGE = "redis://127.0.0.1:6379/0"
URL_OF_THE_GATEWAY = "http://127.0.0.1:8321"
BLOCKS = re.findall(r"```(python|js|sh|go)\n(.*?)```", PAGE.read_text(), re.DOTALL)

# What the page asks of redis-cli, for machines that have none.
REDIS_CLI = """#!{python}
import sys
import redis
_, url, _, *command = sys.argv[1:]
print(redis.Redis.from_url(url).execute_command(*command, sys.stdin.read()))
"""

Sent = Callable[[str], None]


def taken_by_a_worker(pump: Pump, is_taken: Callable[[], bool]) -> None:
    app = make_app(pump.settings, COORDINATOR_QUEUES)
    coordinator_tasks(app, lambda: pump.wiring)
    app.finalize()
    with running(app):
        wait_until(is_taken, "a worker takes what was sent")


@pytest.fixture
def reaches(pumps: Callable[..., Pump], redis_url: str) -> Sent:
    """Waits until a worker has accepted the turn of this id."""

    def wait_for(turn_id: str) -> None:
        pump = pumps(lease_s=10, beat_s=1)
        taken_by_a_worker(pump, lambda: pump.wiring.store.turns.get(turn_id) is not None)
        row = pump.wiring.store.turns.get(turn_id)
        assert row is not None
        assert (row.session_id, row.reject_reason) == ("monday", None)

    return wait_for


def run(command: list[str], code: str, here: Path | None = None, **environment: str) -> str:
    done = subprocess.run(
        command,
        input=code,
        env={**os.environ, **environment},
        cwd=here,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def sent_to(redis_url: str, code: str) -> str:
    assert URL_OF_THE_PAGE in code
    return code.replace(URL_OF_THE_PAGE, redis_url)


def blocks(language: str) -> list[str]:
    return [code for found, code in BLOCKS if found == language]


@pytest.mark.parametrize(("index", "turn_id"), [(0, "order-17"), (1, "order-18")], ids=["celery", "kombu"])
def test_python(reaches: Sent, redis_url: str, index: int, turn_id: str) -> None:
    run([sys.executable, "-"], sent_to(redis_url, blocks("python")[index]))
    reaches(turn_id)


def test_shell(reaches: Sent, redis_url: str, tmp_path: Path) -> None:
    if shutil.which("redis-cli") is None:
        stand_in = tmp_path / "bin" / "redis-cli"
        stand_in.parent.mkdir()
        stand_in.write_text(REDIS_CLI.format(python=sys.executable))
        stand_in.chmod(0o755)
    (code,) = blocks("sh")
    run(["sh"], sent_to(redis_url, code), PATH=f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    reaches("order-20")


@pytest.mark.full
@pytest.mark.needs(bool(shutil.which("npm")), "npm")
def test_node(reaches: Sent, redis_url: str, tmp_path: Path) -> None:
    npm = [
        "npm",
        "install",
        "--prefix",
        str(tmp_path),
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        # A registry that cannot be reached is said, instead of being tried for a quarter of an hour without a word.
        "--prefer-offline",
        "--fetch-retries=1",
    ]
    subprocess.run([*npm, "celery-node@0.5.9"], check=True, timeout=900)
    run(["node", "-"], sent_to(redis_url, blocks("js")[0]), NODE_PATH=str(tmp_path / "node_modules"))
    reaches("order-19")


@pytest.mark.full
@pytest.mark.parametrize(
    ("language", "file", "command"),
    [
        pytest.param("js", "a.js", ["node"], marks=pytest.mark.needs(bool(shutil.which("node")), "node")),
        pytest.param("go", "a.go", ["go", "run"], marks=pytest.mark.needs(bool(shutil.which("go")), "go")),
    ],
)
def test_http(pumps: Callable[..., Pump], tmp_path: Path, language: str, file: str, command: list[str]) -> None:
    pump, code = pumps(), blocks(language)[-1]
    assert URL_OF_THE_GATEWAY in code
    key = re.findall(r'"(order-\d+)"', code)[0]
    with GatewayThread(pump.settings, pump.wiring.brains, wait_s=0.1) as gateway:
        (tmp_path / file).write_text(code.replace(URL_OF_THE_GATEWAY, gateway.url))
        said = run([*command, file], "", tmp_path, GOCACHE=str(tmp_path / "cache"))
    with pump.client as client:
        handle = client.find(key)
    assert handle.session_id == "monday"
    assert handle.turn_id in said


def test_the_page_has_no_other_producers() -> None:
    assert [language for language, _ in BLOCKS] == ["python", "python", "js", "sh", "js", "go"]


STEPS = {"stock": None, "of its own": [0, 2, 5, 8]}


def producer(redis_url: str, prefix: str, steps: list[int] | None = None) -> Celery:
    app = Celery(broker=redis_url, set_as_current=False)
    options: dict[str, object] = {"global_keyprefix": prefix}
    app.conf.broker_transport_options = options | ({"priority_steps": steps} if steps else {})
    return app


@pytest.mark.parametrize("steps", STEPS.values(), ids=list(STEPS))
def test_a_submit_of_any_priority_is_accepted(
    pumps: Callable[..., Pump], redis_url: str, steps: list[int] | None
) -> None:
    pump = pumps(lease_s=10, beat_s=1)
    theirs = producer(redis_url, pump.settings.prefix, steps)
    theirs.conf.task_default_priority = 4
    chosen = [*range(10), None]
    for priority in chosen:
        fields = {"turn_id": f"order-{priority}", "session_id": f"s-{priority}", "user_message": "Restock"}
        options: dict[str, Any] = {} if priority is None else {"priority": priority}
        theirs.send_task("brainq.turn.submit", queue="brainq.turns", ignore_result=True, kwargs=fields, **options)
    (waiting,) = [queue for queue in pump.client.fleet().queues if queue.name == "brainq.turns"]
    assert waiting.depth == len(chosen)
    taken_by_a_worker(pump, lambda: all(pump.wiring.store.turns.get(f"order-{each}") for each in chosen))
    rows = [pump.wiring.store.turns.get(f"order-{priority}") for priority in chosen]
    assert [row and row.reject_reason for row in rows] == [None] * len(chosen)
    theirs.close()


def test_a_submit_for_later_is_a_rejected_row_that_names_the_remedy(pumps: Callable[..., Pump], redis_url: str) -> None:
    pump = pumps(lease_s=10, beat_s=1)
    theirs = producer(redis_url, pump.settings.prefix)
    fields = {"turn_id": "order-90", "session_id": "monday", "user_message": "Restock"}
    theirs.send_task("brainq.turn.submit", queue="brainq.turns", ignore_result=True, kwargs=fields, countdown=1)
    taken_by_a_worker(pump, lambda: pump.wiring.store.turns.get("order-90") is not None)
    row = pump.wiring.store.turns.get("order-90")
    assert row is not None
    assert row.state == "rejected"
    assert "brainq schedule" in (row.reject_reason or "")
    theirs.close()
