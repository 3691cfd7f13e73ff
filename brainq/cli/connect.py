"""How a command reaches Redis, SQL and the brain. What it opens is imported then: `brainq --help` stays quick."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from brainq.client.client import Client
    from brainq.operator import Operator
    from brainq.store.store import Store

COMPLETED = 50  # turns the shell is offered


def export_redis_url() -> str:
    """Put the Redis url into the environment, for the process that is started next."""
    from brainq.devserver.redis_server import known_redis
    from brainq.settings.deployment import load_settings

    url = known_redis(load_settings())
    os.environ["BRAINQ_REDIS_URL"] = url
    return url


def open_client() -> Client:
    """With the brain, for what changes turns. Raises SetupError when Redis does not answer."""
    from brainq.operator import open_client
    from brainq.settings.deployment import load_settings

    return open_client(load_settings())


@contextmanager
def open_brainless_client() -> Generator[Client]:
    """For what asks nothing of the brain's code: it need not be here. Raises SetupError without Redis."""
    with open_operator() as operator:
        yield operator.client


def open_operator() -> Operator:
    """For what only looks: without the brain's code, and without Redis where that is away.

    Raises SetupError when there is no Redis and no database either.
    """
    from brainq.operator import Operator

    return Operator()


@contextmanager
def open_store(*, make: bool = False) -> Generator[tuple[Store, str]]:
    """SQL, and where it is. Raises SetupError where there is no database and `make` does not allow to make one."""
    from brainq.settings.deployment import load_settings
    from brainq.store.engine import require_file
    from brainq.store.store import Store
    from brainq.text.service_url import without_password

    settings = load_settings()
    url = settings.sql_address
    if not make:
        require_file(url)
    with Store.open(url, keys=settings.key_place) as store:
        yield store, without_password(url)


def newest_turns(incomplete: str) -> list[str]:
    """For the shell's completion: ids of the newest turns that begin so. Nothing where there is no database."""
    try:
        with open_store() as (store, _):
            rows = store.turns.list(None, None, COMPLETED)
    except Exception:  # completion shows no errors
        return []
    return [row.turn_id for row in rows if row.turn_id.startswith(incomplete)]
