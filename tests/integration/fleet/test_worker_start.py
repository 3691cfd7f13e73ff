"""What a worker loads before it is ready: a pool that asks no model loads nothing of models."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from brainq.workers.tasks.celery_command import main
from tests.support.pump import sqlite_url

# A worker up to where it consumes, and what it has then loaded.
START = """
import json, sys
from celery.worker import consumer
from brainq.adapters.celery.celery57.consumer import Consumer

def consume(self):
    print(json.dumps(sorted(name for name in sys.modules if "." not in name)))
    raise SystemExit(0)

consumer.Consumer.start = consume
from brainq.workers.tasks.celery_command import main
main(["-A", "workers.POOL", "worker", "-l", "ERROR"])  # by the repository's own short names
"""


def loaded(pool: str, redis_url: str, directory: Path) -> set[str]:
    started = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", START.replace("POOL", pool)],
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": ".",
            "BRAINQ_APP": "tests.support.brains.vendors:brain",
            "BRAINQ_REDIS_URL": redis_url,
            "BRAINQ_SQL_URL": sqlite_url(directory),
            "OPENAI_API_KEY": "sk-none",
        },
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    listed = next((line for line in started.stdout.splitlines() if line.startswith("[")), "")
    assert listed, started.stderr
    return set(json.loads(listed))


@pytest.mark.parametrize("pool", ["parallel", "serial", "finalizer"])
def test_a_pool_whose_turns_wait_for_no_model_loads_no_sdk(pool: str, redis_url: str, tmp_path: Path) -> None:
    names = loaded(pool, redis_url, tmp_path)
    assert "sqlalchemy" in names
    assert not names & {"openai", "anthropic", "genai_prices"}
    assert not names & {"flower", "tornado", "prompt_toolkit"}


def test_another_command_is_refused() -> None:
    with pytest.raises(SystemExit, match="usage"):
        main(["-A", "brainq.workers.parallel", "beat"])


def test_a_coordinator_has_loaded_its_models_sdk_before_it_consumes(redis_url: str, tmp_path: Path) -> None:
    assert {"openai", "genai_prices"} <= loaded("coordinator", redis_url, tmp_path)
