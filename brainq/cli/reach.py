"""How a command reaches Redis, SQL and the brain."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from brainq.devserver.resolve import known_redis
from brainq.errors import InvalidInput, SetupError, TurnNotFound
from brainq.observe.urls import without_password
from brainq.settings import Settings, load_settings

if TYPE_CHECKING:
    from brainq.client.client import Client
    from brainq.contracts.rows import TurnRow
    from brainq.store.store import Store
    from brainq.wiring import Wiring

SHOWN_MATCHES = 5


def share_redis() -> str:
    """Put the Redis url into the environment, for the process that is started next."""
    url = known_redis(load_settings())
    os.environ["BRAINQ_REDIS_URL"] = url
    return url


@contextmanager
def producer() -> Generator[Client]:
    """A Client with the brain, for what changes turns. Raises SetupError when Redis does not answer."""
    from brainq.client.client import Client

    settings = load_settings()
    url = known_redis(settings)
    with Client(settings, redis_url=url) as client:
        _require_answer(client.wiring, url)
        yield client


@contextmanager
def operator() -> Generator[Client]:
    """A Client for what asks nothing of the brain's code: it need not be here. Raises SetupError without Redis."""
    with observer() as seen:
        if seen.client is None:
            raise SetupError(seen.why)
        yield seen.client


@dataclass(frozen=True)
class Observed:
    """What a command that only looks may use. `client` is None when Redis is away; `why` says so."""

    settings: Settings
    store: Store
    client: Client | None
    why: str = ""


@contextmanager
def observer() -> Generator[Observed]:
    """SQL, and Redis if it is there: turns can be looked at without the brain's code, and after their Redis.

    Raises SetupError when there is no Redis and no database either.
    """
    from brainq.brain import Brain
    from brainq.client.client import Client
    from brainq.store.store import Store

    settings = load_settings()
    sql_url = settings.sql_url.get_secret_value()
    try:
        url = known_redis(settings)
        # Looking at turns asks nothing of a brain, so any will do.
        client = Client(settings, Brain("observer", "offline:rules"), redis_url=url)
        _require_answer(client.wiring, url)
    except SetupError as error:
        sqlite = sql_url.removeprefix("sqlite:///")
        if sqlite != sql_url and not Path(sqlite).exists():
            raise
        with Store.open(sql_url) as store:
            yield Observed(settings, store, None, str(error))
        return
    with client:
        yield Observed(settings, client.wiring.store, client)


def find_turn(store: Store, sought: str) -> TurnRow:
    """The turn with this id or request key, or the one whose id begins like this.

    Raises TurnNotFound, or InvalidInput when several begin like this.
    """
    found = store.turns.find(sought) if sought else []
    exact = [row for row in found if sought in (row.turn_id, row.request_key)]
    if len(exact) == 1:
        return exact[0]
    if not found:
        raise TurnNotFound(
            f"no turn has the id, the beginning of an id, or the request key {sought!r}; see `brainq list`"
        )
    if len(found) > 1:
        ids = ", ".join(row.turn_id for row in found[:SHOWN_MATCHES])
        more = ", ..." if len(found) > SHOWN_MATCHES else ""
        raise InvalidInput("TURN", f"several turns begin with {sought!r}: {ids}{more}; give more of the id")
    return found[0]


def _require_answer(wiring: Wiring, url: str) -> None:
    try:
        wiring.state.redis.ping()
    except BrokenPipeError:
        raise
    except Exception as error:
        raise SetupError(
            f"the Redis at {without_password(url)} does not answer ({type(error).__name__}: {error}); "
            "start it, or correct BRAINQ_REDIS_URL; `brainq doctor` says more"
        ) from error
