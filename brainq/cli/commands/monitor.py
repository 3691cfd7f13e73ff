"""`brainq fleet`, `cells`, `scale`, `metrics` and `flower`: watch the fleet, and see how many workers it needs."""

from __future__ import annotations

import ipaddress
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from brainq.cli.connect import export_redis_url, open_brainless_client
from brainq.cli.options import AsJson
from brainq.cli.output import note, note_cells_away, print_page, stdout
from brainq.errors import InvalidInput

FLOWER_CONFIG = Path(__file__).parents[2] / "workers" / "flowerconfig.py"
FLOWER_PORT = 5555
LOOPBACK = "127.0.0.1"
LOGIN_VARIABLES = ("FLOWER_BASIC_AUTH", "FLOWER_AUTH")


def fleet(as_json: AsJson = False) -> None:
    """Show the fleet: workers, queue depths, lanes, abandoned work.

    The figures come from the workers' heartbeats, Redis and SQL, so they are up to a few seconds old. `brainq doctor`
    names problems and remedies.

    \b
    Examples:
      brainq fleet
      brainq fleet --json
    """
    from brainq.cli.pages.fleet import print_fleet

    with open_brainless_client() as client:
        state = client.fleet()
    print_page(state, print_fleet, as_json=as_json)
    note_cells_away(state.cells_away)


def cells(as_json: AsJson = False) -> None:
    """List the cells, with their state, tenants, turns and moves.

    A cell that does not answer within a second is shown as away. Its tenants' turns wait; turns in other cells
    continue. BRAINQ_CELLS names the cells; if it is not set, there is a single cell.

    \b
    Examples:
      brainq cells
      brainq cells --json
    """
    from brainq.cli.pages.fleet import print_cells

    with open_brainless_client() as client:
        state = client.cells()
    print_page(state, print_cells, as_json=as_json)


def scale(
    pool: Annotated[str | None, typer.Option("--pool", metavar="POOL", help="Only this pool.")] = None,
    least: Annotated[
        int | None, typer.Option("--min", metavar="N", help="Request at least this many workers per pool.")
    ] = None,
    most: Annotated[
        int | None, typer.Option("--max", metavar="N", help="Request at most this many workers per pool.")
    ] = None,
    build: Annotated[str | None, typer.Option("--build", metavar="BUILD", help="Only this build's workers.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show how many workers each pool needs, and which can stop first.

    The number is the queued and running work divided by the threads per worker, rounded up. An autoscaler can read the
    same numbers from GET /v1/scale. BRAINQ_SCALE_MIN and BRAINQ_SCALE_MAX set the default bounds.

    If several builds run, each has its own rows, such as serial@1.5, for its own queues and its share of the common
    queues. A build to which turns are pinned needs at least one worker of each pool.

    \b
    Examples:
      brainq scale
      brainq scale --pool serial --max 4 --json
      brainq scale --build 1.4 --min 0
    """
    from brainq.cli.pages.fleet import print_scale

    with open_brainless_client() as client:
        wanted = client.scale(pool, least=least, most=most, build=build)
    print_page(wanted, print_scale, as_json=as_json)


def metrics(
    port: Annotated[
        int | None,
        typer.Option(
            "--serve",
            min=1,
            max=65535,
            metavar="PORT",
            help="Serve the metrics at /metrics on this port of 127.0.0.1 until Ctrl+C.",
        ),
    ] = None,
) -> None:
    """Print the metrics of the whole fleet in Prometheus' text format.

    The gateway serves the same metrics at /metrics, to tokens with the verb `metrics`. Use --serve if you have no
    gateway, or if Prometheus must work while SQL, which holds the tokens, is unreachable. --serve needs no token, so it
    listens only on 127.0.0.1.

    \b
    Examples:
      brainq metrics
      brainq metrics --serve 9464
    """
    with open_brainless_client() as client:
        if port is None:
            stdout().file.write(client.metrics())
            return
        from brainq.app.devserver.ports import require_free_port
        from brainq.client.connection import cells_of
        from brainq.fleet.all_cells import serve_metrics

        require_free_port(LOOPBACK, port, "the metrics page", "--serve")
        _, thread = serve_metrics(cells_of(client), port)
        note(f"metrics at http://{LOOPBACK}:{port}/metrics")
        thread.stopping.wait()


def flower(
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="The port.")] = FLOWER_PORT,
    address: Annotated[
        str, typer.Option("--address", help="The address to listen on; any address other than loopback needs a login.")
    ] = LOOPBACK,
    url_prefix: Annotated[
        str,
        typer.Option(
            "--url-prefix", metavar="PATH", help="The path under which a proxy serves Flower, such as /flower."
        ),
    ] = "",
) -> None:
    """Run Flower, which shows workers, queues and tasks in a browser.

    This is `celery -A brainq.workers.coordinator flower ...` with brainq's settings. Search for a turn's id to see
    the turn's tasks; `brainq show` has more about a single turn.

    \b
    Examples:
      brainq flower
      FLOWER_BASIC_AUTH=me:secret brainq flower --address 0.0.0.0 --port 8080
      brainq flower --url-prefix /flower
    """
    from brainq.app.devserver.ports import require_free_port

    require_login(address, os.environ)
    require_free_port(address, port, "Flower", "--port")
    export_redis_url()
    os.execv(sys.executable, flower_command(port, address, url_prefix))


def flower_command(port: int, address: str = LOOPBACK, url_prefix: str = "") -> list[str]:
    """Return the celery command with brainq's Flower settings."""
    command = [
        sys.executable,
        "-m",
        "brainq.workers.tasks.celery_command",
        "-A",
        "brainq.workers.coordinator",
        "flower",
    ]
    prefix = [f"--url-prefix={url_prefix}"] if url_prefix else []
    return [*command, f"--conf={FLOWER_CONFIG}", f"--address={address}", f"--port={port}", *prefix]


def require_login(address: str, environment: Mapping[str, str]) -> None:
    """Raise InvalidInput if Flower could be reached from other machines without a login."""
    try:
        is_loopback = ipaddress.ip_address(address).is_loopback
    except ValueError:
        is_loopback = address == "localhost"
    if not is_loopback and not any(environment.get(name) for name in LOGIN_VARIABLES):
        raise InvalidInput(
            "--address",
            f"{address!r} can be reached from other machines, and Flower has no login; "
            "set FLOWER_BASIC_AUTH=user:password, or keep 127.0.0.1 and put a proxy with a login in front",
        )
