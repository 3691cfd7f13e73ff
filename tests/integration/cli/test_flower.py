"""`brainq flower` as a process."""

from __future__ import annotations

import os
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest

from brainq.app.devserver.ports import free_port
from brainq.cli.commands.monitor import flower_command
from tests.support.server import RedisServer
from tests.support.wait import wait_until

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.full
def test_flower_ends_soon_when_it_is_told_to_while_redis_is_frozen(tmp_path: Path) -> None:
    server, port = RedisServer().start(), free_port()
    frozen = server.pid
    environment = {
        **os.environ,
        "BRAINQ_APP": "examples.vault.app:brain",
        "BRAINQ_REDIS_URL": server.url,
        "BRAINQ_DATA_DIR": str(tmp_path),
        "PYTHONPATH": str(ROOT),
    }
    log = tmp_path / "flower.log"
    with log.open("wb") as out:
        process = subprocess.Popen(flower_command(port), env=environment, stdout=out, stderr=out)
    try:
        wait_until(lambda: answers(port), "Flower answers", 90, 0.1)
        os.kill(frozen, signal.SIGSTOP)
        answers(port, "/workers?refresh=1")  # it asks all workers, and its threads wait for Redis
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0, log.read_text()  # it was 27 s and more
    finally:
        os.kill(frozen, signal.SIGCONT)
        process.kill()
        process.wait()
        server.stop()


def answers(port: int, path: str = "/healthcheck") -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False
