"""What is compared: each system in its durable way, and in what its documentation has for at most once."""

from __future__ import annotations

from dataclasses import dataclass

from lab.compare.systems import SYSTEMS as COMPARED
from lab.compare.systems import System


@dataclass(frozen=True)
class Setting:
    """`name` is what the rival's file knows it by; `is_once`: that of at most once, or what comes nearest."""

    name: str
    label: str
    is_once: bool = False


@dataclass(frozen=True)
class Rival:
    """`roles` are its processes, in the order of their start; `worker` is the one that is killed."""

    system: System
    roles: tuple[str, ...]
    settings: tuple[Setting, ...]

    @property
    def name(self) -> str:
        return self.system.name

    @property
    def module(self) -> str:
        return f"lab.faults.rivals.run_{self.system.module}"


_BY_NAME = {system.name: system for system in COMPARED}
PARTED = ("server", "worker", "client")

RIVALS = (
    Rival(
        _BY_NAME["langgraph"],
        ("worker",),
        (
            Setting("async", "default (`durability=async`)"),
            Setting("sync", "`durability=sync`; it documents no at most once", is_once=True),
        ),
    ),
    Rival(
        _BY_NAME["dbos"],
        ("server", "worker"),
        (
            Setting("default", "default"),
            Setting("max_recovery_attempts=0", "`max_recovery_attempts=0`; steps are at least once", is_once=True),
        ),
    ),
    Rival(
        _BY_NAME["temporal"],
        PARTED,
        (
            Setting("default", "default, `start_to_close` 10 s"),
            Setting("maximum_attempts=1", "`maximum_attempts=1`", is_once=True),
        ),
    ),
    Rival(
        _BY_NAME["restate"],
        PARTED,
        (
            Setting("default", "default"),
            Setting("one attempt", "`maxRetryAttempts: 1`, and of the invocation `maxAttempts: 1`", is_once=True),
        ),
    ),
    Rival(
        _BY_NAME["celery"],
        ("server", "coordinator", "worker", "client"),
        (
            Setting("late acks", "`acks_late`, `reject_on_worker_lost`; visible again after 20 s"),
            Setting("default", "default: acknowledged before it runs", is_once=True),
        ),
    ),
    Rival(
        _BY_NAME["brainq"],
        PARTED,
        (
            Setting("idempotent=True", "`idempotent=True`: again, with the same key"),
            Setting("default", "default", is_once=True),
        ),
    ),
)


def chosen(names: str) -> tuple[Rival, ...]:
    """Return the rivals of a list such as `dbos,temporal`, or all if it is empty. Raises ValueError for others."""
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if unknown := sorted(set(wanted) - {rival.name for rival in RIVALS}):
        raise ValueError(f"no such system: {', '.join(unknown)}; there are {', '.join(r.name for r in RIVALS)}")
    return tuple(rival for rival in RIVALS if rival.name in wanted or not wanted)
