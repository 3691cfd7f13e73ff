"""Combine the descriptions that several cells give of themselves into one, field by field.

A number is the sum, or None (unknown) if one cell does not know it. A flag is true if it is true everywhere. A text is
the first cell's. Lists are concatenated. `RULES` has the fields that need another rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from brainq.contracts import fleet
from brainq.contracts.base import Wire
from brainq.contracts.budgets import BudgetState
from brainq.contracts.build import Build, BuildBrain, Versions

W = TypeVar("W", bound=Wire)
Rule = Callable[[Sequence[Any]], Any]
"""A function that combines the cells' values of a field, of which there is at least one."""


def combine(parts: Sequence[W]) -> W:
    """Combine the descriptions of several cells. Pure.

    parts: at least one description, in the order of the cells.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    rules = RULES.get(type(first), {})
    values = {name: [getattr(each, name) for each in parts] for name in type(first).model_fields}
    return first.model_copy(update={name: rules.get(name, _usual)(found) for name, found in values.items()})


def combine_same(parts: Iterable[W], *names: str) -> tuple[W, ...]:
    """Combine the descriptions that are equal in these fields, in the order of their first appearance."""
    groups: dict[tuple[object, ...], list[W]] = {}
    for part in parts:
        groups.setdefault(tuple(getattr(part, name) for name in names), []).append(part)
    return tuple(map(combine, groups.values()))


def same(*names: str) -> Rule:
    """Return a rule for lists, which combines the items that are equal in these fields."""
    return lambda lists: combine_same((part for parts in lists for part in parts), *names)


def worst(values: Sequence[Any]) -> Any:
    """Return the highest value, or None if one value is unknown."""
    return None if None in values else max(values)


def highest_known(values: Sequence[Any]) -> Any:
    """Return the highest of the known values."""
    return max((value for value in values if value is not None), default=None)


def first_known(values: Sequence[Any]) -> Any:
    """Return the first value that is not empty, or else the first cell's."""
    return next((value for value in values if value), values[0])


def first_to_stop(lists: Sequence[Sequence[fleet.StopCandidate]]) -> tuple[fleet.StopCandidate, ...]:
    """Return all workers in the order in which they may stop: those that drain first, then the least busy."""
    workers = (worker for found in lists for worker in found)
    return tuple(sorted(workers, key=lambda worker: (not worker.draining, worker.busy, worker.name)))


def _usual(values: Sequence[Any]) -> Any:
    first = next((value for value in values if value is not None), None)
    if isinstance(first, bool):
        return all(values)
    if isinstance(first, int | float):
        return None if None in values else sum(values)
    if isinstance(first, Wire):
        return combine(values)
    if isinstance(first, tuple):
        return tuple(item for found in values for item in found)
    if isinstance(first, dict):
        return {key: sum(found.get(key, 0) for found in values) for key in dict.fromkeys(k for f in values for k in f)}
    return first


def _worst_policy(policies: Sequence[str]) -> str:
    return next((policy for policy in policies if policy != "noeviction"), policies[0])


RULES: Mapping[type[Wire], Mapping[str, Rule]] = {
    fleet.Fleet: {
        "at_ms": max,
        "pools": same("name"),
        "queues": same("name"),
        "models": same("name", "account"),
        "stops": lambda lists: tuple({stop.field: stop for stops in lists for stop in stops}.values()),
    },
    fleet.Pool: {"queues": first_known},
    fleet.FleetQueue: {"oldest_age_s": highest_known},
    fleet.FleetCapacity: {"brains": same("name")},
    fleet.FleetSweeper: {"last_round_s": worst, "overdue_s": max},
    fleet.FleetModel: {"stopped_s": max},
    fleet.FleetRedis: {"version": min, "policy": _worst_policy},
    fleet.FleetScale: {"at_ms": max, "pools": same("pool")},
    fleet.PoolScale: {
        "threads": max,
        "oldest_age_s": highest_known,
        "builds": same("build"),
        "stop_first": first_to_stop,
    },
    Versions: {"builds": lambda lists: tuple(sorted(same("name")(lists), key=lambda build: build.name))},
    Build: {"formats": first_known, "brains": same("name", "digest")},
    BuildBrain: {},
    BudgetState: {  # A raise is made in the home cell and applies to all cells.
        "usd": first_known,
        "raised_usd": max,
        "is_spent": any,
        "noticed_at": first_known,
    },
}
