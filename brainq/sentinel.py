"""Addresses of a Redis that Sentinel watches: `sentinel://[user:password@]host:port,host:port,.../master[/database]`.

The login is that of the servers; the sentinels themselves are asked without one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

from brainq.errors import SetupError

_ADDRESS = re.compile(
    r"sentinel://(?:(?P<login>[^@/]*)@)?(?P<hosts>[^/@]+)/(?P<master>[\w.-]+)(?:/(?P<database>\d+))?/?",
    re.ASCII,
)
_HOST = re.compile(r"(?P<host>[^:\[\]]+|\[[0-9a-fA-F:.]+\])(?::(?P<port>\d{1,5}))?")
DEFAULT_PORT = 26379
FORM = "sentinel://user:password@host:26379,host:26379/master/0"


@dataclass(frozen=True, slots=True)
class Sentinels:
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


def sentinels_of(url: str) -> Sentinels:
    """Raises SetupError, without the url, when it is none of these."""
    found = _ADDRESS.fullmatch(url)
    hosts = [_HOST.fullmatch(host) for host in found["hosts"].split(",")] if found else []
    if not found or not all(hosts):
        raise SetupError(f"a sentinel address has the form {FORM}, with the name of the master")
    return Sentinels(
        tuple((host["host"].strip("[]"), int(host["port"] or DEFAULT_PORT)) for host in hosts if host),
        found["master"],
        int(found["database"] or 0),
        found["login"] or "",
    )
