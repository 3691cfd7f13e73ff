"""Addresses of Redis: `sentinel://[user:password@]host:port,host:port,.../master[/database]`, and the TCP
options that find a connection whose other end is gone.

The login of a Sentinel address is that of the servers; the sentinels themselves are asked without one.
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from urllib.parse import unquote

from brainq.errors import SetupError

_ADDRESS = re.compile(
    r"sentinel://(?:(?P<login>[^@/]*)@)?(?P<hosts>[^/@]+)/(?P<master>[\w.-]+)(?:/(?P<database>\d+))?/?", re.ASCII
)
_HOST = re.compile(r"(?P<host>[^:\[\]]+|\[[0-9a-fA-F:.]+\])(?::(?P<port>\d{1,5}))?")
DEFAULT_PORT = 26379
SENTINEL_URL_FORM = "sentinel://user:password@host:26379,host:26379/master/0"
_WANTED = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 3, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 10_000}
KEEPALIVE_OPTIONS: dict[int, int] = {
    getattr(socket, name): value for name, value in _WANTED.items() if hasattr(socket, name)
}
"""For setsockopt at IPPROTO_TCP, as far as this system knows them: the kernel finds a connection whose other end is
gone, within some 20 s."""


@dataclass(frozen=True, slots=True)
class SentinelAddress:
    """Who is asked for the primary, under which name, and how to log in there."""

    hosts: tuple[tuple[str, int], ...]
    master: str
    database: int
    login: str

    @property
    def username(self) -> str | None:
        return unquote(self.login.partition(":")[0]) or None

    @property
    def password(self) -> str | None:
        return unquote(self.login.partition(":")[2]) or None

    @property
    def celery_url(self) -> str:
        """As kombu writes it; the master's name is an option of its transport."""
        login = f"{self.login}@" if self.login else ""
        return ";".join(f"sentinel://{login}{host}:{port}/{self.database}" for host, port in self.hosts)


def parse_sentinel_url(url: str) -> SentinelAddress:
    """Raises SetupError, without the url, for anything else."""
    match = _ADDRESS.fullmatch(url)
    hosts = [_HOST.fullmatch(host) for host in match["hosts"].split(",")] if match else []
    if not match or not all(hosts):
        raise SetupError(f"a sentinel address has the form {SENTINEL_URL_FORM}, with the name of the master")
    return SentinelAddress(
        tuple((host["host"].strip("[]"), int(host["port"] or DEFAULT_PORT)) for host in hosts if host),
        match["master"],
        int(match["database"] or 0),
        match["login"] or "",
    )
