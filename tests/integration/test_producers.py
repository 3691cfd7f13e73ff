"""Every producer of docs/producers.md, run as the page has it, reaches a real worker."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from brainq.broker.app import make_app
from brainq.broker.names import COORDINATOR_QUEUES
from brainq.tasks.register import coordinator_tasks
from tests.integration.broker.worker import running
from tests.support.gateways import GatewayThread
from tests.support.pump import Pump
from tests.support.wait import wait_until

PAGE = Path(__file__).parents[2] / "docs" / "producers.md"
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


@pytest.fixture
def reaches(pumps: Callable[..., Pump], redis_url: str) -> Sent:
    """Waits until a worker has accepted the turn of this id."""

    def wait_for(turn_id: str) -> None:
        pump = pumps(lease_s=10, beat_s=1)
        app = make_app(pump.settings, COORDINATOR_QUEUES)
        coordinator_tasks(app, lambda: pump.wiring)
        app.finalize()
        with running(app):
            wait_until(lambda: pump.wiring.store.turns.get(turn_id), f"{turn_id} is accepted")
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
def test_http(
    pumps: Callable[..., Pump], tmp_path: Path, language: str, file: str, command: list[str]
) -> None:
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
