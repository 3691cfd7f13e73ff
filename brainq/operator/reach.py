"""Whether Redis answers; and where opening a database would make an empty one."""

from __future__ import annotations

from pathlib import Path

from brainq.brains import GivenBrains
from brainq.client.client import Client
from brainq.devserver.resolve import known_redis
from brainq.errors import SetupError, Unreachable
from brainq.settings import Settings
from brainq.state.away import disk_is_full


def reached(settings: Settings, brain: GivenBrains) -> Client:
    """A client whose Redis answers. Raises SetupError."""
    client = Client(settings, brain, redis_url=known_redis(settings))
    try:
        require_answer(client)
    except BaseException:
        client.close()
        raise
    return client


def require_answer(client: Client) -> None:
    """Raise SetupError, with the remedy, when its Redis does not answer."""
    try:
        client.ping()
    except Unreachable as away:
        if away.__cause__ is not None and disk_is_full(away.__cause__):
            raise SetupError(str(away)) from away
        raise SetupError(
            f"{away}; start it, or correct BRAINQ_REDIS_URL; `brainq doctor` says more"
        ) from away


def require_database(settings: Settings, away: SetupError) -> None:
    """Raise `away` where opening the database would make one."""
    url = settings.sql_url.get_secret_value()
    sqlite = url.removeprefix("sqlite:///")
    if sqlite != url and not Path(sqlite).exists():
        raise away
