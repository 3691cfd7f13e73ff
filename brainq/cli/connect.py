"""Open Redis, SQL and the brain for a command. Imports are inside the functions so that `brainq --help` is quick."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from brainq.adapters.sql.store import Store
    from brainq.client.client import Client
    from brainq.client.operator import Operator

COMPLETED = 50  # The number of turns offered for the shell's completion.


def export_redis_url() -> str:
    """Set BRAINQ_REDIS_URL in the environment for the process that is started next, and return the URL."""
    from brainq.app.devserver.redis_server import known_redis
    from brainq.runtime.settings.deployment import load_settings

    url = known_redis(load_settings())
    os.environ["BRAINQ_REDIS_URL"] = url
    return url


def open_client() -> Client:
    """Open a client with the brain, for commands that change turns. Raises SetupError if Redis does not answer."""
    from brainq.client.operator import open_client
    from brainq.runtime.settings.deployment import load_settings

    return open_client(load_settings())


@contextmanager
def open_brainless_client() -> Generator[Client]:
    """Open a client for commands that do not need the brain's code. Raises SetupError if Redis does not answer."""
    with open_operator() as operator:
        yield operator.client


def open_operator() -> Operator:
    """Open an operator for read-only commands, without the brain's code. It also works while Redis is unreachable.

    Raises SetupError if neither Redis nor a database is available.
    """
    from brainq.client.operator import Operator

    return Operator()


@contextmanager
def open_store(*, make: bool = False) -> Generator[tuple[Store, str]]:
    """Open SQL, and yield the store and its URL without the password.

    make   whether to create a missing database; if False, SetupError is raised instead
    """
    from brainq.adapters.sql.engine import require_file
    from brainq.adapters.sql.store import Store
    from brainq.runtime.settings.deployment import load_settings
    from brainq.runtime.text.service_url import without_password

    settings = load_settings()
    url = settings.sql_address
    if not make:
        require_file(url)
    with Store.open(url, keys=settings.key_place) as store:
        yield store, without_password(url)


def newest_turns(incomplete: str) -> list[str]:
    """Return the ids of the newest turns that begin with `incomplete`, for the shell's completion."""
    try:
        with open_store() as (store, _):
            rows = store.turns.list(None, None, COMPLETED)
    except Exception:  # completion shows no errors
        return []
    return [row.turn_id for row in rows if row.turn_id.startswith(incomplete)]
