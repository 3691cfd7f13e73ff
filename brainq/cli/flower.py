"""`brainq flower`: Celery's monitor, with brainq's settings for it."""

from __future__ import annotations

import ipaddress
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from brainq.cli.options import App
from brainq.errors import InvalidInput

CONFIG = Path(__file__).parents[1] / "workers" / "flowerconfig.py"
PORT = 5555
LOOPBACK = "127.0.0.1"
LOGINS = ("FLOWER_BASIC_AUTH", "FLOWER_AUTH")


def flower(
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Where it listens.")] = PORT,
    address: Annotated[
        str, typer.Option("--address", help="On which address; others than loopback need a login.")
    ] = LOOPBACK,
    app: App = "",
) -> None:
    """Run Flower, which shows workers, queues and tasks in a browser.

    This process becomes `celery -A brainq.workers.coordinator flower ...`. Search it for a turn's id to see the
    turn's tasks; `brainq show` tells more about one turn.

    \b
    Examples:
      brainq flower
      FLOWER_BASIC_AUTH=me:secret brainq flower --address 0.0.0.0 --port 8080
    """
    from brainq.cli.reach import share_redis
    from brainq.devserver.probe import require_free_port

    require_login(address, os.environ)
    require_free_port(address, port, "Flower", "--port")
    share_redis()
    os.execv(sys.executable, flower_command(port, address))


def flower_command(port: int, address: str = LOOPBACK) -> list[str]:
    """The celery command, with the settings that brainq brings."""
    command = [
        sys.executable,
        "-m",
        "brainq.tasks.flower",
        "-A",
        "brainq.workers.coordinator",
        "flower",
    ]
    return [*command, f"--conf={CONFIG}", f"--address={address}", f"--port={port}"]


def require_login(address: str, environment: Mapping[str, str]) -> None:
    """Raise InvalidInput when others than this machine could look at Flower without a login."""
    try:
        is_loopback = ipaddress.ip_address(address).is_loopback
    except ValueError:
        is_loopback = address == "localhost"
    if not is_loopback and not any(environment.get(name) for name in LOGINS):
        raise InvalidInput(
            "--address",
            f"{address!r} can be reached by others, and Flower would ask nobody for a login; "
            "set FLOWER_BASIC_AUTH=user:password, or leave it on 127.0.0.1 behind a proxy that authenticates",
        )
