"""docker-compose.yml, followed without an engine: its image is built, and each service's line runs in it.

The image is the Dockerfile's on a stand-in for python:3.12-slim (Debian's Python; no registry is asked). What the file
says of user, mounts, environment and health check is taken out of the file. Real Redis, real Postgres with a password.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import signal
import subprocess
import urllib.request
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from brainq.app.devserver.ports import free_port
from brainq.cli.commands.setup import write_project
from tests.support.images import HERE, Container, build, container, remove
from tests.support.postgres import PostgresServer
from tests.support.server import RedisServer
from tests.support.wait import wait_until

pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(1800),
    pytest.mark.needs(HERE, "buildah and debootstrap, as root, to build the image"),
]

ROOT = Path(__file__).resolve().parents[2]
IMAGE = "localhost/brainq-rehearsal"
USER = 10001
PASSWORD = "p@ss/w%rd:?#"
POOLS = ("coordinator", "parallel", "serial", "finalizer")
OURS = (*POOLS, "gateway", "flower")
TELL_KEY = """

@brain.tool(effect=Effect.READ_ONLY)
def tell_key() -> str:
    \"\"\"The key that the parallel pool has.\"\"\"
    return os.environ.get("OPENAI_API_KEY", "none")
"""
LETTERS = re.compile(r"\$\{(\w+)(?::[?-]([^}]*))?\}|\$\$")
yaml: Any = importlib.import_module("yaml")  # it has no types


def filled(text: str, given: dict[str, str]) -> str:
    """As Compose fills in `${NAME:?why}`, `${NAME:-default}` and `$$`."""
    return LETTERS.sub(lambda found: "$" if found[0] == "$$" else given.get(found[1], found[2] or ""), text)


class Rehearsal:
    """The compose file on this machine: its services' names stand for ports of loopback."""

    def __init__(self, directory: Path, redis: RedisServer, postgres_port: int) -> None:
        self.directory = directory
        self.redis = redis
        self.gateway_port = free_port()
        self.flower_port = free_port()
        self._brain, self._data = directory / "shop", directory / "data"
        write_project(self._brain)
        with (self._brain / "app.py").open("a") as app:
            app.write(TELL_KEY)
        (self._brain / ".env").write_text("OPENAI_API_KEY=of-the-file\n")
        self._data.mkdir()
        os.chown(self._data, USER, USER)
        directory.chmod(0o755)
        self.given = {
            "BRAINQ_APP": "app:brain",
            "BRAIN_DIR": str(self._brain),
            "POSTGRES_PASSWORD": PASSWORD,
            "FLOWER_BASIC_AUTH": "me:secret",
        }
        text = (ROOT / "docker-compose.yml").read_text()
        self.services: dict[str, Any] = yaml.safe_load(text)["services"]
        redis_at = redis.url.removeprefix("redis://").split("/")[0]
        self._places = {
            "redis:6379": redis_at,
            "postgres:5432": f"127.0.0.1:{postgres_port}",
            "127.0.0.1:8321": f"127.0.0.1:{self.gateway_port}",
            "127.0.0.1:5555": f"127.0.0.1:{self.flower_port}",
        }

    def container(self, service: str) -> Container:
        said = self.services[service]
        # `KEY:` is what the shell has: nothing, here. An engine that makes `KEY=` of it must change nothing.
        environment = {key: self._here(value or "") for key, value in said["environment"].items()}
        volumes = [filled(volume, self.given) for volume in said["volumes"]]
        volumes = [volume.replace("brain-data:", f"{self._data}:") for volume in volumes]
        return container(IMAGE, f"{USER}:{USER}", volumes, environment)

    def command(self, service: str) -> list[str]:
        command = shlex.split(self.services[service]["command"])
        ports = {"gateway": self.gateway_port, "flower": self.flower_port}
        return [*command, "--port", str(ports[service])] if service in ports else command

    def health(self, service: str) -> list[str]:
        kind, *words = (self._here(word) for word in self.services[service]["healthcheck"]["test"])
        assert kind == "CMD"
        return words

    def _here(self, text: str) -> str:
        """Filled in, with this machine's places."""
        text = filled(text, self.given)
        for name, place in self._places.items():
            text = text.replace(name, place)
        return text


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Generator[Rehearsal]:
    build(ROOT / "ops/docker/Dockerfile", ROOT, IMAGE)
    directory = tmp_path_factory.mktemp("compose")
    for parent in list(directory.parents)[:3]:  # user 10001 looks into what this user made
        parent.chmod(0o755)
    port = free_port()
    with ExitStack() as stack:
        redis = RedisServer(durable=True).start()
        stack.callback(redis.stop)
        postgres = PostgresServer(port=port)
        stack.callback(postgres.stop)
        postgres.start()
        with psycopg.connect(postgres.url(), autocommit=True) as connection:
            password = sql.Literal(PASSWORD)
            connection.execute(sql.SQL("CREATE ROLE brainq LOGIN PASSWORD {}").format(password))
            connection.execute("CREATE DATABASE brainq OWNER brainq")
        yield Rehearsal(directory, redis, port)


@contextmanager
def running(
    rehearsal: Rehearsal, services: tuple[str, ...]
) -> Generator[dict[str, tuple[Container, subprocess.Popen[bytes], Path]]]:
    """The services, each in a container of its own, until the end; stopped as an engine stops them."""
    with ExitStack() as stack:
        up: dict[str, tuple[Container, subprocess.Popen[bytes], Path]] = {}
        for service in services:
            one = rehearsal.container(service)
            stack.callback(remove, one)
            path = rehearsal.directory / f"{service}.log"
            process = one.start(rehearsal.command(service), stack.enter_context(path.open("wb")))
            stack.callback(_stop, process)
            up[service] = (one, process, path)
        yield up


def _stop(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def ask(rehearsal: Rehearsal, path: str, token: str, body: dict[str, Any] | None = None) -> Any:
    request = urllib.request.Request(
        f"http://127.0.0.1:{rehearsal.gateway_port}{path}",
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Prefer": "wait=30"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def test_the_image_is_what_the_compose_file_says_of_it(rehearsal: Rehearsal) -> None:
    one = rehearsal.container("coordinator")
    try:
        code = (
            "import celery, mcp, openai, anthropic, psycopg, fastapi, opentelemetry.sdk, os, pathlib\n"
            "print(os.getuid(), os.getcwd(), celery.__version__, os.environ['BRAINQ_DATA_DIR'])\n"
            "print(sorted(path.name for path in pathlib.Path('/src').iterdir()))\n"
        )
        said = one.run("python", "-c", code)
        assert said.returncode == 0, said.stderr
        lock = (ROOT / "requirements.lock").read_text()
        pinned = re.search(r"^celery==(\S+)", lock, re.MULTILINE)
        assert pinned is not None
        first, second = said.stdout.splitlines()
        assert first == f"{USER} /app {pinned[1]} /data"
        assert second == "['LICENSE', 'README.md', 'brainq', 'pyproject.toml', 'requirements.lock']"
        assert one.run("touch", "/app/new").returncode != 0
        assert one.run("touch", "/data/new").returncode == 0
    finally:
        remove(one)


def test_the_project_of_init_runs_a_turn_in_every_services_line(rehearsal: Rehearsal) -> None:
    with running(rehearsal, OURS) as up:

        def healthy(service: str) -> bool:
            one, process, path = up[service]
            assert process.poll() is None, f"{service} ended:\n{path.read_text()[-4000:]}"
            return one.run(*rehearsal.health(service)).returncode == 0

        for service in (*POOLS, "flower"):
            wait_until(lambda service=service: healthy(service), f"{service} is healthy", 180, 0.5)
        gateway = up["gateway"][0]
        made = gateway.run("brainq", "token", "create", "web", "--sessions", "*", "--verb", "read", "--verb", "submit")
        assert made.returncode == 0, made.stderr
        token = made.stdout.split()[-1]
        wait_until(lambda: healthy("gateway"), "the gateway is healthy once there is a token", 60, 0.5)
        message = "count apples, restock apples by 5, tell_key"
        answer = ask(rehearsal, "/v1/turns", token, {"session_id": "monday", "user_message": message})
        turn = answer["turn_id"]

        def ended() -> bool:
            return ask(rehearsal, f"/v1/turns/{turn}", token)["state"] == "completed"

        wait_until(ended, "the turn is over", 120, 0.5)
        shown = gateway.run("brainq", "show", turn)
        assert "apples: now 8" in shown.stdout, shown.stdout + shown.stderr
        # Compose passes on a key that nobody gave as nothing; the celery lines read the one in /app/.env.
        assert "of-the-file" in shown.stdout
        assert (rehearsal.directory / "data/stock.db").is_file()
        rehearsal.redis.kill()
        for service in POOLS:
            wait_until(lambda service=service: not healthy(service), f"{service} says it cannot work", 60, 0.5)
        rehearsal.redis.again()
        for service in POOLS:
            wait_until(lambda service=service: healthy(service), f"{service} can work again", 60, 0.5)
