"""Which Redis a process uses: the configured one, else one of its own."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from brainq.devserver.locks import pool_owner
from brainq.devserver.redis_server import EmbeddedServer, ServerInUseError, running_url, socket_path
from brainq.errors import SetupError
from brainq.settings.deployment import Settings


def known_redis(settings: Settings) -> str:
    """The url of BRAINQ_REDIS_URL, else of the server that `brainq dev` or `brainq up` runs on this data directory.

    Raises SetupError when there is neither.
    """
    if settings.redis_url is not None:
        return settings.redis_url.get_secret_value()
    url = running_url(settings.data_dir / "redis")
    if not url and (starting := pool_owner(settings.data_dir)):
        raise SetupError(
            f"{starting} is starting on {settings.data_dir.absolute()} and has no Redis yet; try again in a few seconds"
        )
    if not url:
        raise SetupError(
            "no Redis: BRAINQ_REDIS_URL is not set (such as redis://127.0.0.1:6379/0), and no `brainq dev` runs on "
            f"{settings.data_dir.absolute()}. Start `brainq dev` in another terminal and call this from the same "
            "directory, or set BRAINQ_REDIS_URL"
        )
    return url


@contextmanager
def resolve_redis(settings: Settings, port: int | None = None) -> Generator[str]:
    """Yield the url of the Redis to use, as `own_redis` finds it."""
    with open_redis(settings, port) as (url, _):
        yield url


@contextmanager
def open_redis(settings: Settings, port: int | None = None) -> Generator[tuple[str, EmbeddedServer | None]]:
    """Yield the url of the Redis to use, and its server where that is one of this process's own.

    BRAINQ_REDIS_URL if it is set. Else a server that another process already runs on
    `settings.data_dir`, which is shared and left running. Else an embedded server, stopped on leaving; it
    listens on `port` of loopback, too, if one is given.
    Raises SetupError if no server can be found or started.
    """
    if settings.redis_url is not None and port is not None:
        raise SetupError(
            "--port is for the Redis that brainq brings, and BRAINQ_REDIS_URL names another; leave one of them out"
        )
    if settings.redis_url is not None:
        yield settings.redis_url.get_secret_value(), None
        return
    directory = settings.data_dir / "redis"
    server = EmbeddedServer(directory, unix_socket=socket_path(directory), port=port)
    try:
        url = server.start()
    except ServerInUseError as in_use:
        if in_use.url is None:
            raise
        yield in_use.url, None
        return
    try:
        yield url, server
    finally:
        server.stop()
