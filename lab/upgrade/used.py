"""Use the features of this build, so that an older build continues with a database and a Redis that
contain their data.
"""

from __future__ import annotations

import importlib
import pkgutil

from brainq.adapters.sql import tables
from brainq.adapters.sql.tables.on_demand import OnDemandTables
from brainq.client.client import Client
from brainq.client.connection import wiring_of


def every_on_demand() -> list[OnDemandTables]:
    """Return the tables of each feature that was added after the baseline migration."""
    names = [name for _, name, _ in pkgutil.iter_modules(tables.__path__, f"{tables.__name__}.")]
    modules = [importlib.import_module(name) for name in (*names, "brainq.contrib.encryption.tenant_keys")]
    found = [value for module in modules for value in vars(module).values() if isinstance(value, OnDemandTables)]
    return list({id(value): value for value in found}.values())


def use_features(client: Client) -> list[str]:
    """Create all of these tables, and write the data of operators to them and to Redis.

    Returns the names of the tables.
    """
    engine = wiring_of(client).store.engine
    for each in every_on_demand():
        each.make(engine)
    client.budgets.set("all", per="day", usd=1e9)
    client.budgets.set("brain shop", per="hour", usd=1e9)
    client.stop("tool", "nothing", mode="forbid", reason="it is not there")
    client.stop("tool", "look", reason="for a moment")
    client.lift("tool", "look")
    return sorted(name for each in every_on_demand() for name in each.metadata.tables)
