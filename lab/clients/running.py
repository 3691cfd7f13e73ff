"""Starts a fleet and a gateway, and runs the scripts of the clients against them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from brainq.adapters.sql.store import Store
from brainq.app.access import Tokens, Verb
from brainq.app.devserver.local_fleet import LocalFleet
from brainq.app.devserver.ports import free_port
from brainq.app.devserver.redis_server import EmbeddedServer
from lab.clients.matrix import FEATURES, HERE, OfficialClient, Record, Seen

ROOT = HERE.parents[1]
INSTALLED = Path(sys.prefix)
JS, PYTHON = INSTALLED / "js-clients", INSTALLED / "py-clients"
SCRIPT_S = 400.0
TARGETS = {"js": ("js-clients", JS), "python": ("py-clients", PYTHON)}


@dataclass(frozen=True, slots=True)
class Deployment:
    """The address of the gateway, and a token with every right."""

    url: str
    key: str


def why_not(client: OfficialClient) -> str | None:
    """Return why the client cannot be run here, or None if it can."""
    if client.place == "own":
        return None
    if client.place == "js" and shutil.which("node") is None:
        return f"{client.title} needs Node 20 or newer, and there is no `node`"
    target, folder = TARGETS[client.place]
    if not (folder / ".ready").is_file():
        return f"{client.title} is not installed; install it with: make {target}"
    return None


@contextmanager
def deployed(directory: Path) -> Generator[Deployment]:
    """Run the four pools and a gateway of `lab.clients.brain` inside the block."""
    sql_url = f"sqlite:///{directory / 'clients.db'}"
    with Store.open(sql_url) as store:
        key = Tokens(store).create("clients", ["*"], tuple(Verb)).text
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with EmbeddedServer(directory / "redis") as server:
        environment = {
            "BRAINQ_APP": "lab.clients.brain:brain",
            "BRAINQ_REDIS_URL": server.url,
            "BRAINQ_SQL_URL": sql_url,
            "BRAINQ_HTTP_PORT": str(port),
            "BRAINQ_HTTP_A2A": url,
            "BRAINQ_HTTP_CORS": "http://page.example",
            "PYTHONPATH": str(ROOT),
        }
        with LocalFleet(directory / "workers", environment), _gateway(directory, environment):
            yield Deployment(url, key)


@contextmanager
def _gateway(directory: Path, environment: dict[str, str]) -> Generator[None]:
    log_path = directory / "gateway.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "brainq.workers.gateway"],
            env={**os.environ, **environment},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=log,
        )
    try:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise RuntimeError(f"the gateway did not start:\n{log_path.read_text()}")
        yield
    finally:
        process.terminate()
        process.wait(60)
        if process.stdout is not None:
            process.stdout.close()


def run_client(client: OfficialClient, where: Deployment) -> Record:
    """Run the client's script. Raises RuntimeError with its last output if it ends before all results are there."""
    done = subprocess.run(
        [*_command(client), where.url, where.key],
        cwd=JS if client.place == "js" else HERE,
        env={**os.environ, "OPENAI_API_KEY": "none", "OPENAI_AGENTS_DISABLE_TRACING": "1"},
        capture_output=True,
        text=True,
        timeout=SCRIPT_S,
        check=False,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    version = next((line["version"] for line in lines if "version" in line), "")
    features = {line["feature"]: Seen(line["outcome"], line.get("why", "")) for line in lines if "feature" in line}
    if not version or set(features) != set(FEATURES):
        missing = sorted(set(FEATURES) - set(features))
        raise RuntimeError(f"{client.script} did not tell of {missing}:\n{done.stderr[-4000:]}")
    return Record(version, features)


def _command(client: OfficialClient) -> list[str]:
    if client.place == "js":
        # With `-e` node finds the packages of its working directory, and no file of this one.
        source = "\n".join((HERE / "js" / name).read_text() for name in ("report.mjs", *client.script.split()))
        return ["node", "--no-warnings", "--input-type=module", "-e", source]
    python = sys.executable if client.place == "own" else str(PYTHON / "python" / "bin" / "python")
    return [python, str(HERE / "python" / client.script)]
