"""`brainq dev --cells N`: several local cells, each with its own Redis, SQLite and pools, and one gateway for all."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from rich.text import Text

from brainq.app.devserver.local_fleet import ALL, POOLS, LocalFleet
from brainq.app.devserver.locks import exclusive_pools
from brainq.app.devserver.redis_server import CELLS_FILE, EmbeddedServer, socket_path
from brainq.cli.commands.run import has_http
from brainq.cli.dev.stack import (
    DEV_GRACE_S,
    Stack,
    brain_lines,
    check_start,
    example_message,
    http_line,
    launch_dev_gateway,
    logs_of,
    print_rows,
    process_environment,
    start_workers,
)
from brainq.cli.dev.supervisor import StopSignals
from brainq.engine.brain.brains import Brains
from brainq.errors import InvalidInput
from brainq.runtime.observe.tracebacks import TRACEBACK_VARIABLE
from brainq.runtime.settings.deployment import Settings, load_settings

MOST_CELLS = 8
Addresses = Mapping[str, Mapping[str, str]]
"""The addresses of each cell by name, as in BRAINQ_CELLS."""


def run_dev_cells(count: int, *, log_level: str, http: bool, apart: bool = False) -> None:
    """Run cells until Ctrl+C or SIGTERM. Raises the errors of `run_dev`, and InvalidInput if servers are configured.

    apart: whether each pool has a worker process of its own.
    """
    settings, started = load_settings(), time.monotonic()
    _require_own_servers(settings)
    with ExitStack() as exits:
        exits.enter_context(exclusive_pools(settings.data_dir, POOLS, "brainq dev --cells"))
        brains = check_start(settings)
        stack, cells = _open_stack(settings, exits, names_of(count), log_level, POOLS if apart else (ALL,))
        served = launch_dev_gateway(stack, exits) if http and has_http() else 0
        _print_addresses(stack, cells, brains, http_line(http, served, settings.http_port))
        stack.follower.skip_to_end()
        stack.stop_workers_at_exit(DEV_GRACE_S)
        if start_workers(stack, started):
            _print_next_steps(stack, brains)
            stack.keep_running(lambda: None)
    stack.console.print(f"stopped; the data stays in {settings.data_dir.absolute()}", style="dim")


def names_of(count: int) -> tuple[str, ...]:
    return tuple("abcdefgh"[:count])


def _require_own_servers(settings: Settings) -> None:
    if settings.redis_url is not None or settings.all_cells():
        raise InvalidInput(
            "--cells", "it starts its own Redis and SQLite; unset BRAINQ_CELLS, BRAINQ_CELL and BRAINQ_REDIS_URL"
        )


def _open_stack(
    settings: Settings, exits: ExitStack, names: tuple[str, ...], log_level: str, pools: Sequence[str]
) -> tuple[Stack, Addresses]:
    stop = exits.enter_context(StopSignals())
    servers: list[EmbeddedServer] = []
    cells: dict[str, dict[str, str]] = {}
    for name in names:
        home = directory_of(settings, name)
        server = EmbeddedServer(home / "redis", unix_socket=socket_path(home / "redis"))
        server.name = f"{name}-redis"
        servers.append(exits.enter_context(server))
        cells[name] = {"redis": server.url, "sql": f"sqlite:///{home / 'brainq.db'}"}
    cells_file(settings).write_text(json.dumps(cells, indent=2) + "\n")
    # Settings of a single Redis and SQL would contradict the cells.
    given = {
        **process_environment(settings, log_level),
        "BRAINQ_CELLS": json.dumps(cells),
        "BRAINQ_SQL_URL": "",
        TRACEBACK_VARIABLE: "1",
    }
    fleets = [
        LocalFleet(
            logs_of(settings),
            {**given, "BRAINQ_CELL": name},
            log_level=log_level.upper(),
            pools=pools,
            label=f"{name}-",
        )
        for name in names
    ]
    fleet = fleets[0]
    fleet.workers += [worker for other in fleets[1:] for worker in other.workers]
    return Stack(settings, exits, stop, servers, fleet, given), cells


def directory_of(settings: Settings, name: str) -> Path:
    """Return the directory of a cell's data."""
    return settings.data_dir.absolute() / "cells" / name


def cells_file(settings: Settings) -> Path:
    """Return the file to which BRAINQ_CELLS must be set in other terminals."""
    return settings.data_dir.absolute() / CELLS_FILE


def _print_addresses(stack: Stack, cells: Addresses, brains: Brains, http: Text) -> None:
    rows = brain_lines(stack.settings.app, brains)
    for name, servers in cells.items():
        rows[f"cell {name}"] = Text(f"{servers['redis']}  {servers['sql']}").append(
            "  home: the directory and tokens" if name == next(iter(cells)) else "", "dim"
        )
    print_rows(stack.console, {**rows, "http": http, "logs": Text(f"{stack.logs}/*.log")})


def _print_next_steps(stack: Stack, brains: Brains) -> None:
    app = "" if stack.settings.app == "app:brain" else f" -A {stack.settings.app}"
    lines = [
        f"\nIn a second terminal, in this directory: export BRAINQ_CELLS={cells_file(stack.settings)}",
        f'  brainq{app} submit acme:1 "{example_message(brains.default)}" --follow',
        "  brainq cells                       shows the cells and their tenants",
        "  brainq move acme: --to b           moves the tenant acme: to another cell",
    ]
    stack.console.print("\n".join(lines))
    stack.console.print("Ctrl+C stops everything. What the workers warn of comes below.\n", style="dim")
