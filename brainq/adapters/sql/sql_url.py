"""Parse a SQL URL, in one place for all users: SQLite's file, or Postgres' hosts, login and options."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote

from sqlalchemy import URL

from brainq.errors import SetupError
from brainq.runtime.text.service_url import ENCODE_PASSWORD

_FORM = "use sqlite:///path/to.db or postgresql://user:password@host:5432/name"
_POSTGRES = ("postgres", "postgresql", "postgresql+psycopg")
_SQLITE = ("sqlite", "sqlite+pysqlite")
_URL = re.compile(r"(?P<scheme>[A-Za-z][\w+]*)://(?P<rest>.*)", re.ASCII | re.DOTALL)
_POSTGRES_REST = re.compile(
    r"(?:(?P<login>[^:/]*(?::[^@]*)?)@)?(?P<hosts>[^/?]*)(?:/(?P<database>[^?]*))?(?:\?(?P<query>.*))?", re.DOTALL
)
_HOST = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[^\[\]:@#\s]+)(?::(?P<port>\d{1,5})?)?", re.ASCII)
_YES_OR_NO = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
POSTGRES_PORT = 5432


@dataclass(frozen=True)
class SqlUrl:
    """A URL for SQLAlchemy, with the parts that SQLAlchemy does not read.

    options   arguments for psycopg itself, with their types
    pooled    whether a pooler in transaction mode is in front of Postgres; None to detect it at the connect
    """

    url: URL
    options: dict[str, Any]
    pooled: bool | None = None

    @property
    def hosts(self) -> list[tuple[str, str]]:
        """The Postgres hosts and ports. A value is empty if libpq's default applies."""
        query = self.url.query
        if "host" not in query:
            return [(self.url.host or "", str(self.url.port or ""))]
        hosts, ports = (str(query.get(name, "")).split(",") for name in ("host", "port"))
        return list(zip(hosts, ports if len(ports) == len(hosts) else ports[:1] * len(hosts), strict=True))

    @property
    def sqlite_path(self) -> str:
        """The path of a SQLite file, "" for Postgres."""
        path = self.url.database or "" if self.url.drivername == "sqlite" else ""
        return path.removeprefix("file:").partition("?")[0]


def parse_sql_url(url: str) -> SqlUrl:
    """Read `sqlite:///path/to.db`, `postgresql://...` or `postgres://...`.

    Several hosts are separated by commas, or given as options: `postgresql:///db?host=a:5432&host=b:5432`. Connections
    then lead to the one that accepts writes, unless the URL has another `target_session_attrs`.

    Raises SetupError for any other URL, and for options that no driver has. The message contains no part of a password.
    """
    found = _URL.fullmatch(url.strip())
    if found is None:
        raise SetupError(f"the SQL URL cannot be read; {_FORM}")
    scheme, rest = found["scheme"].lower(), found["rest"]
    if scheme in _SQLITE:
        return _sqlite(rest)
    if scheme in _POSTGRES:
        return _postgres(rest)
    raise SetupError(f"the SQL URL names {scheme!r}; use sqlite:/// or postgresql://")


def _sqlite(rest: str) -> SqlUrl:
    path, _, query = rest.partition("?")
    if path and not path.startswith("/"):
        raise SetupError("a SQLite URL needs three slashes before a relative path and four before an absolute path")
    options = dict(parse_qsl(query, keep_blank_values=True))
    if "uri" not in options and (unknown := sorted(set(options) - {"timeout"})):
        raise SetupError(
            f"the SQL URL has the option {unknown[0]!r}, which brainq does not support for SQLite; remove it"
        )
    return SqlUrl(URL.create("sqlite", database=path[1:] or None, query=options), {})


def _postgres(rest: str) -> SqlUrl:
    found = _POSTGRES_REST.fullmatch(rest)
    assert found is not None  # every part may be empty
    login, hosts, database, query = found.group("login", "hosts", "database", "query")
    user, colon, password = (login or "").partition(":")
    # SQLAlchemy would also read h:1/db?password=a of h:1/db?password=a@b as a login, and b as a host.
    is_cut = re.search(r"[?&]\w+=", login or "") is not None
    if is_cut or "@" in hosts + (database or "") or _has_open_at(query or "", is_second=bool(password)):
        raise SetupError(f"the SQL URL has more than one @; {ENCODE_PASSWORD}")
    texts, several, options, pooled = _options(query or "")
    pairs = [_host(host) for host in several or (hosts.split(",") if hosts else ())] or [(None, None)]
    if len(pairs) > 1:  # libpq accepts these pairs in the URL; SQLAlchemy needs them as options.
        if "port" in texts:
            raise SetupError("the SQL URL has several hosts and the option `port`; write each port after its host")
        texts |= {"host": ",".join(str(host) for host, _ in pairs)}
        texts |= {"port": ",".join(str(port or POSTGRES_PORT) for _, port in pairs)}
        pairs = [(None, None)]
    if "," in texts.get("host", "") + texts.get("hostaddr", ""):
        texts.setdefault("target_session_attrs", "read-write")  # one of the hosts is the primary
    url = URL.create(
        "postgresql+psycopg",
        username=unquote(user) or None,
        password=unquote(password) if colon else None,
        host=pairs[0][0],
        port=pairs[0][1],
        database=database or None,
        query=texts,
    )
    return SqlUrl(url, options, pooled)


def _has_open_at(query: str, *, is_second: bool) -> bool:
    """Return whether an @ in the options may end the login: me:a@b?password=c@h may have the password a@b?password=c.

    is_second   True if there is already a password before the options
    """
    named = [part.partition("=") for part in query.split("&")]
    return any("@" in name or (is_second and "pass" in name and "@" in value) for name, _, value in named)


def _host(text: str) -> tuple[str | None, int | None]:
    if text.startswith("/"):
        return text, None
    found = _HOST.fullmatch(text)
    if found is None or int(found["port"] or POSTGRES_PORT) not in range(1, 65536):
        raise SetupError(f"the hosts of the SQL URL cannot be read; {_FORM}, and {ENCODE_PASSWORD}")
    return found["host"].strip("[]"), int(found["port"]) if found["port"] else None


def _options(query: str) -> tuple[dict[str, str], list[str], dict[str, Any], bool | None]:
    """Return the options for libpq, the hosts if they are several, psycopg's own options, and `pooled`."""
    try:
        from psycopg import pq
    except ModuleNotFoundError as missing:
        raise SetupError(f"{missing.name} is not installed: pip install 'brainq[postgres]'") from missing
    known = {option.keyword.decode() for option in pq.Conninfo.get_defaults()} | {"prepare_threshold", "pooled"}
    given: dict[str, list[str]] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in known:
            raise SetupError(_unknown_option(name, known))
        given.setdefault(name, []).append(value)
    several = given.pop("host") if len(given.get("host", ())) > 1 else []
    texts = {name: values[-1] for name, values in given.items()}
    threshold, pooled = texts.pop("prepare_threshold", None), texts.pop("pooled", None)
    options = {} if threshold is None else {"prepare_threshold": _threshold(threshold)}
    return texts, several, options, None if pooled is None else _yes_or_no(pooled)


def _unknown_option(name: str, known: set[str]) -> str:
    # A password with & or ? would be read as options, so the parts are not shown.
    if near := difflib.get_close_matches(name, known, 1):
        return f"the SQL URL has an option that Postgres' driver does not know; did you mean {near[0]!r}?"
    return (
        "the SQL URL has an option that Postgres' driver does not know; remove it (options are those of libpq, "
        f"`pooled` and `prepare_threshold`), and {ENCODE_PASSWORD}"
    )


def _threshold(value: str) -> int | None:
    if value.lower() in ("", "none"):
        return None
    if not value.isdecimal():
        raise SetupError(
            "prepare_threshold in the SQL URL must be a number of executions, or `none` to prepare no statement"
        )
    return int(value)


def _yes_or_no(value: str) -> bool:
    if value.lower() not in _YES_OR_NO:
        raise SetupError("pooled in the SQL URL must be `true` or `false`")
    return _YES_OR_NO[value.lower()]
