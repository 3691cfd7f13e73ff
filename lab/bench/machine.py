"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

from brainq.app.devserver.redis_server import find_server


def machine() -> dict[str, Any]:
    """Return the CPU, the cores that this process may use, the load before the run, and the relevant versions."""
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load_before": [round(load, 2) for load in os.getloadavg()],
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "redis_server": _server_version(),
        "sqlite": sqlite3.sqlite_version,
        **{name: version(name) for name in ("celery", "kombu", "redis", "hiredis", "sqlalchemy", "pydantic")},
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()


def _server_version() -> str:
    """Return the name and version of the server, such as `valkey-server 9.1.0`."""
    binary = find_server()
    said = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False).stdout
    numbers = [word.removeprefix("v=") for word in said.split() if word.startswith("v=")]
    return " ".join([binary.name, *numbers[:1]])
