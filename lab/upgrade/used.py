"""What this build leaves in a database and a Redis, where an older build goes on that knows nothing of it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import brainq.adapters.sql.tables
from brainq.adapters.sql.tables.on_demand import OnDemandTables
from brainq.client.client import Client
from brainq.client.connection import wiring_of


def every_on_demand() -> Iterator[OnDemandTables]:
    """The tables of each feature that came after the baseline migration."""
    for module in pkgutil.iter_modules(brainq.adapters.sql.tables.__path__):
        found = vars(importlib.import_module(f"brainq.adapters.sql.tables.{module.name}"))
        yield from {id(value): value for value in found.values() if isinstance(value, OnDemandTables)}.values()


def use_features(client: Client) -> list[str]:
    """Make all of these tables, and leave in them and in Redis what operators do. The names of the tables."""
    engine = wiring_of(client).store.engine
    for tables in every_on_demand():
        tables.make(engine)
    client.budgets.set("all", per="day", usd=1e9)
    client.budgets.set("brain shop", per="hour", usd=1e9)
    client.stop("tool", "nothing", mode="forbid", reason="it is not there")
    client.stop("tool", "look", reason="for a moment")
    client.lift("tool", "look")
    return sorted(name for tables in every_on_demand() for name in tables.metadata.tables)
