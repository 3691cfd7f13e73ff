"""The help desk as real pools and a gateway, and the turns that are looked at."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from brainq.app.devserver.local_fleet import LocalFleet
from brainq.app.devserver.ports import free_port

APP = "lab.screenshots.brain:brain"
STANDING = (
    ("desk:shop", "Print a label for order A-9999"),
    ("desk:mia", "Ask the old model what it thinks of peat"),
    ("desk:ida", "How many maples are here, of each kind and size?"),
    ("desk:leo", "When do you close today?"),
    ("desk:jon", "Where is the witch hazel of order A-1043?"),
    ("desk:eva", "Write to Ida about the next maples"),
    ("desk:eva", "And to everybody else who waits for one"),
)
"""What was said in which session, before anybody looks."""


@contextmanager
def desk(directory: Path, redis_url: str) -> Generator[str]:
    """Run it; gives the gateway's address."""
    port = free_port()
    environment = {
        "BRAINQ_APP": APP,
        "BRAINQ_REDIS_URL": redis_url,
        "BRAINQ_SQL_URL": f"sqlite:///{directory / 'desk.db'}",
        "BRAINQ_HTTP_PORT": str(port),
        "BRAINQ_LOG_LEVEL": "warning",
    }
    fleet = LocalFleet(directory / "logs", environment)
    fleet.start()
    gateway = subprocess.Popen(
        [sys.executable, "-m", "brainq.workers.gateway"],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert gateway.stdout is not None
        gateway.stdout.readline()  # it says where it listens once it does
        yield f"http://127.0.0.1:{port}"
    finally:
        gateway.terminate()
        gateway.wait(30)
        fleet.stop()
