"""`brainq flower` as a process."""

from __future__ import annotations

import os
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest

from brainq.cli.flower import flower_command
from brainq.devserver.probe import free_port
from tests.support.server import RedisServer
from tests.support.wait import wait_until

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.full
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_flower_ends_when_it_is_told_to_also_without_redis(tmp_path: Path, how: signal.Signals) -> None:
    server, port = RedisServer().start(), free_port()
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
        server.stop()
        wait_until(lambda: "refused" in log.read_text(), "Flower has noticed", 60, 0.1)
        process.send_signal(how)
        assert process.wait(25) == 0, log.read_text()  # the grace of what runs it is 30 s
    finally:
        process.kill()
        process.wait()
        server.stop()


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthcheck", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False
