"""Parse addresses of a Redis Cluster: `redis+cluster://[user:password@]host:port,host:port/`, with TLS
`rediss+cluster://`. The hosts are seeds: each client asks one of them where its keys are.

All keys of a cell share one hash tag, so they are in one hash slot, on one primary. The option `tag` of the URL names
the tag; the settings add it (`in_slot`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from brainq.errors import SetupError
from brainq.runtime.settings.redis_url import RedisAddress, parse_redis_url, split_login
from brainq.runtime.text.service_url import ENCODE_PASSWORD

CLUSTER_SCHEMES = ("redis+cluster://", "rediss+cluster://")
REPLICATED_SCHEMES = ("sentinel://", *CLUSTER_SCHEMES)
"""The URLs of servers that a replica may replace."""
CLUSTER_URL_FORM = "redis+cluster://user:password@host:6379,host:6379/"
_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    """A parsed cluster address: its seeds, each with the login and the TLS options, and the hash tag of all keys."""

    seeds: tuple[RedisAddress, ...]
    tag: str


def parse_cluster_url(url: str) -> ClusterAddress:
    """Parse `redis+cluster://` or `rediss+cluster://`. Raises SetupError, without any part of a password, for anything
    else, and for a database other than 0."""
    scheme, _, rest = url.partition("+cluster://")
    login, rest = split_login(rest)
    before, _, query = rest.partition("?")
    hosts, _, database = before.partition("/")
    if database.strip("/") not in ("", "0"):
        raise SetupError(f"a Redis Cluster has no database but 0; write {CLUSTER_URL_FORM}")
    if not hosts or not all(hosts.split(",")):
        raise SetupError(f"a cluster's address has the form {CLUSTER_URL_FORM}; {ENCODE_PASSWORD}")
    options = parse_qsl(query, keep_blank_values=True)
    tag = next((value for name, value in options if name == "tag"), "")
    if tag and not _TAG.fullmatch(tag):
        raise SetupError("the URL's option tag must be 1 to 64 of A-Z a-z 0-9 _ . -")
    shared = urlencode([(name, value) for name, value in options if name != "tag"])
    seeds = (f"{scheme}://{f'{login}@' if login else ''}{host}/0?{shared}" for host in hosts.split(","))
    return ClusterAddress(tuple(parse_redis_url(seed) for seed in seeds), tag)


def in_slot(url: str, prefix: str, cell: str = "") -> str:
    """Return the URL of a cluster with the hash tag of a cell's keys: `bq`, or `bq.a` for cell `a`. Returns any other
    URL, and one that has a tag, unchanged."""
    if not url.startswith(CLUSTER_SCHEMES) or re.search(r"[?&]tag=", url.rpartition("@")[2]):
        return url
    tag = ".".join(filter(None, (prefix.strip("{}:"), cell)))
    return f"{url}{'&' if '?' in url.rpartition('@')[2] else '?'}{urlencode({'tag': tag})}"


def as_cluster_url(url: str) -> str:
    """Return the form in which the URL of one node is the URL of its cluster."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}+cluster://{re.split('[/?]', rest)[0]}/"


def key_prefix(url: str, prefix: str) -> str:
    """Return the prefix of all keys on the server at `url`: that of the settings, or the hash tag of a cluster."""
    return f"{{{parse_cluster_url(url).tag}}}:" if url.startswith(CLUSTER_SCHEMES) else prefix
