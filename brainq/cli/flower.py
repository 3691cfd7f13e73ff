"""`brainq flower`: Celery's monitor, with brainq's settings for it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from brainq.cli.options import App

SHIPPED = Path(__file__).parents[2] / "ops" / "flower" / "flowerconfig.py"

# What SHIPPED says and why, for an installed brainq, which has no ops/ beside it.
OPTIONS: dict[str, str] = {
    "address": "127.0.0.1",
    "port": "5555",
    "read_only": "True",
    "max_tasks": "10000",
    "max_workers": "500",
    "purge_offline_workers": "300",
    "persistent": "False",
    "natural_time": "True",
    "tasks_columns": "name,uuid,state,args,received,started,runtime,worker",
    "task_runtime_metric_buckets": "0.01,0.05,0.1,0.5,1.0,2.0,5.0,10.0,30.0,60.0,120.0",
}


def flower(
    port: Annotated[
        int, typer.Option("--port", min=1, max=65535, help="Where it listens, on 127.0.0.1.")
    ] = 5555,
    app: App = "",
) -> None:
    """Run Flower, which shows workers, queues and tasks in a browser.

    This process becomes `celery -A workers.coordinator flower ...`. Search it for a turn's id to see the turn's
    tasks; `brainq show` tells more about one turn.

    \b
    Examples:
      brainq flower
      FLOWER_BASIC_AUTH=me:secret brainq flower --port 8080
    """
    from brainq.cli.reach import share_redis

    share_redis()
    os.execv(sys.executable, flower_command(port))


def flower_command(port: int, *, shipped: Path = SHIPPED) -> list[str]:
    """The celery command: with the shipped settings if they are there, else with the same as arguments."""
    command = [sys.executable, "-m", "celery", "-A", "workers.coordinator", "flower"]
    if shipped.exists():
        return [*command, f"--conf={shipped}", f"--port={port}"]
    return [*command, *(f"--{name}={value}" for name, value in (OPTIONS | {"port": str(port)}).items())]
