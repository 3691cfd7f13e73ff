"""Parse addresses of Redis once for redis-py, which brainq's clients use, and for kombu, which Celery uses.

`redis://[user:password@]host[:port][/database]`, `rediss://` with TLS, `unix://[user:password@]/path`, and
`sentinel://[user:password@]host:port,host:port,.../master[/database]`. The login of a Sentinel address is for the
servers; the sentinels are queried without one.

redis-py and kombu accept different options, and each fails on those of the other. So each gets a URL that is rebuilt
from the parsed one, and options that only one of them accepts are refused.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote, urlencode

from brainq.errors import SetupError
from brainq.runtime.text.service_url import ENCODE_PASSWORD

_ADDRESS = re.compile(
    r"sentinel://(?:(?P<login>[^@/]*)@)?(?P<hosts>[^/@]+)/(?P<master>[\w.-]+)(?:/(?P<database>\d+))?/?", re.ASCII
)
_HOST = re.compile(r"(?P<host>[^:\[\]]+|\[[0-9a-fA-F:.]+\])(?::(?P<port>\d{1,5}))?")
DEFAULT_PORT = 26379
REDIS_URL_FORM = "redis://user:password@host:6379/0"
SENTINEL_URL_FORM = "sentinel://user:password@host:26379,host:26379/master/0"
_WANTED = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 3, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 10_000}
KEEPALIVE_OPTIONS: dict[int, int] = {
    getattr(socket, name): value for name, value in _WANTED.items() if hasattr(socket, name)
}
"""The options of setsockopt at IPPROTO_TCP that this system has. With them the kernel notices within about 20 s that
the other end of a connection is gone.
"""


_PLACE = re.compile(
    r"(?:(?P<host>[^:/?#@\[\]\s,;]+|\[[0-9a-fA-F:.]+\])(?::(?P<port>\d{1,5}))?)?(?P<path>/[^?#]*)?", re.ASCII
)
# Celery's spelling is CERT_NONE, redis-py's is none.
_CERT_REQS = {f"{before}{name}": name for name in ("required", "optional", "none") for before in ("", "cert_")}
_TLS_OPTIONS = {"ssl_cert_reqs", "ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile", "ssl_check_hostname"}
_YES_OR_NO = {"true": "true", "yes": "true", "1": "true", "false": "false", "no": "false", "0": "false"}
DEFAULT_REDIS_PORT = 6379


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """A parsed address. `place` is the host and port, or the path of a socket; `tls` has the ssl_ options."""

    scheme: str
    username: str
    password: str
    place: str
    database: int
    tls: Mapping[str, str]

    @property
    def client_url(self) -> str:
        """The URL for redis-py."""
        if self.scheme == "unix":
            return f"unix://{self._login}{quote(self.place)}?db={self.database}"
        return self._tcp_url

    @property
    def celery_url(self) -> str:
        """The URL for kombu."""
        if self.scheme == "unix":
            return f"redis+socket://{self._login}{quote(self.place)}?virtual_host={self.database}"
        return self._tcp_url

    @property
    def _tcp_url(self) -> str:
        options = f"?{urlencode(self.tls)}" if self.tls else ""
        return f"{self.scheme}://{self._login}{self.place}/{self.database}{options}"

    @property
    def _login(self) -> str:
        if not self.username and not self.password:
            return ""
        password = f":{quote(self.password, safe='')}" if self.password else ""
        return f"{quote(self.username, safe='')}{password}@"


def parse_redis_url(url: str) -> RedisAddress:
    """Parse `redis://`, `rediss://` or `unix://`.

    Raises SetupError, without any part of a password, for anything that redis-py or kombu does not accept.
    """
    scheme, _, rest = url.partition("://")
    login, rest = ("", rest) if scheme == "unix" and rest.startswith("/") else split_login(rest)
    username, _, password = login.partition(":")
    before, _, query = rest.partition("?")
    found = _PLACE.fullmatch(before)
    if found is None or not 0 < int(found["port"] or DEFAULT_REDIS_PORT) < 65536:
        raise SetupError(f"the URL's host or port cannot be read; write {REDIS_URL_FORM}, and {ENCODE_PASSWORD}")
    options = _options(scheme, query)
    database = options.pop("db", None)
    if scheme == "unix":
        place = unquote(found["path"] or "")
        if found["host"] or not place.strip("/"):
            raise SetupError("a unix socket has the form unix:///path/of.sock?db=0")
    else:
        place = f"{found['host'] or 'localhost'}:{found['port'] or DEFAULT_REDIS_PORT}"
        in_path = (found["path"] or "").strip("/") or None
        if None not in (in_path, database) and in_path != database:
            raise SetupError(f"the URL names two databases; write {REDIS_URL_FORM}")
        database = in_path or database
    if not (database or "0").isdecimal():
        raise SetupError(f"the URL's database is not a number; write {REDIS_URL_FORM}")
    return RedisAddress(scheme, unquote(username), unquote(password), place, int(database or 0), options)


def split_login(rest: str) -> tuple[str, str]:
    """Split the part after the scheme at the last `@`, like drivers do. Raises SetupError for a login that they would
    read as a part of the path or the options."""
    login, _, place = rest.rpartition("@")
    if re.search(r"[/?#]", login):
        raise SetupError(f"the URL has one of / ? # before an @; {ENCODE_PASSWORD}")
    return login, place


def _options(scheme: str, query: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name == "db":
            options[name] = value
        elif name not in _TLS_OPTIONS:
            taken = "db, and with rediss:// " + ", ".join(sorted(_TLS_OPTIONS))
            shown = repr(name) if re.fullmatch(r"[a-z]+(_[a-z]+)+|protocol|timeout", name) else "one"
            raise SetupError(
                f"the URL has an option that redis-py and Celery do not both accept ({shown}); remove it, because "
                f"brainq chooses such options itself. The accepted options are {taken}"
            )
        elif scheme != "rediss":
            raise SetupError(f"{name} is for TLS; write rediss:// in place of {scheme}://")
        else:
            options[name] = _tls_value(name, value)
    return options


def _tls_value(name: str, value: str) -> str:
    words = {"ssl_cert_reqs": _CERT_REQS, "ssl_check_hostname": _YES_OR_NO}.get(name)
    if words is None:
        return value
    if value.lower() not in words:
        raise SetupError(f"{name} is one of {', '.join(sorted(set(words.values())))}")
    return words[value.lower()]


@dataclass(frozen=True, slots=True)
class SentinelAddress:
    """A parsed Sentinel address: the sentinels, the master's name, and the login for the servers."""

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
        """The URL for kombu, where the master's name is an option of the transport."""
        login = f"{self.login}@" if self.login else ""
        return ";".join(f"sentinel://{login}{host}:{port}/{self.database}" for host, port in self.hosts)


def parse_sentinel_url(url: str) -> SentinelAddress:
    """Parse `sentinel://`. Raises SetupError, without the URL, for anything else."""
    match = _ADDRESS.fullmatch(url)
    hosts = [_HOST.fullmatch(host) for host in match["hosts"].split(",")] if match else []
    if not match or not all(hosts):
        raise SetupError(
            f"a sentinel address has the form {SENTINEL_URL_FORM}, with the name of the master and without options; "
            f"{ENCODE_PASSWORD}"
        )
    return SentinelAddress(
        tuple((host["host"].strip("[]"), int(host["port"] or DEFAULT_PORT)) for host in hosts if host),
        match["master"],
        int(match["database"] or 0),
        match["login"] or "",
    )
