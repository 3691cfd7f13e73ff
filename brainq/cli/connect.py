"""How a command reaches Redis, SQL and the brain."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from brainq.devserver.redis_server import known_redis
from brainq.settings.deployment import load_settings

if TYPE_CHECKING:
    from brainq.client.client import Client
    from brainq.operator.operator import Operator


def export_redis_url() -> str:
    """Put the Redis url into the environment, for the process that is started next."""
    url = known_redis(load_settings())
    os.environ["BRAINQ_REDIS_URL"] = url
    return url


@contextmanager
def open_client() -> Generator[Client]:
    """A Client with the brain, for what changes turns. Raises SetupError when Redis does not answer."""
    from brainq.client.client import Client
    from brainq.operator.operator import require_redis

    settings = load_settings()
    url = known_redis(settings)
    with Client(settings, redis_url=url) as client:
        require_redis(client)
        yield client


@contextmanager
def open_brainless_client() -> Generator[Client]:
    """A Client for what asks nothing of the brain's code: it need not be here. Raises SetupError without Redis."""
    with open_operator() as operator:
        yield operator.client


def open_operator() -> Operator:
    """For what only looks: without the brain's code, and without Redis where that is away.

    Raises SetupError when there is no Redis and no database either.
    """
    from brainq.operator.operator import Operator

    return Operator()
