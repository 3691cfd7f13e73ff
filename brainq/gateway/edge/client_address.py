"""The address of a client. Behind a trusted proxy it is the one in `X-Forwarded-For`, which uvicorn reads.

BRAINQ_HTTP_PROXIES names the proxies that are trusted. Each proxy appends the address that it was asked from, so the
header is read from its end, and the last address that is no trusted proxy's is the client's: what a client sends in the
header itself is never reached. `X-Forwarded-Proto` of a trusted proxy is believed, too. From other addresses both
headers are ignored.
"""

from __future__ import annotations

import ipaddress
from typing import TypedDict

from starlette.types import Scope

from brainq.settings.http import HttpSettings, split_list


class ProxyOptions(TypedDict):
    """uvicorn's options of proxies; see `uvicorn.middleware.proxy_headers`."""

    proxy_headers: bool
    forwarded_allow_ips: list[str]


def proxy_options(settings: HttpSettings) -> ProxyOptions:
    """The proxies of BRAINQ_HTTP_PROXIES are trusted. Without any, not even one on loopback is, as uvicorn's default
    would have it."""
    return {"proxy_headers": bool(settings.http_proxies), "forwarded_allow_ips": split_list(settings.http_proxies)}


def client_address(scope: Scope) -> str:
    """The client's address, after the trusted proxies' headers; "" for a client on a unix socket."""
    host, _ = scope.get("client") or ("", 0)
    return host


def address_key(address: str) -> str:
    """The key that requests of an address are counted under. A client with IPv6 has a whole /64, so that is the key."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(found, ipaddress.IPv6Address):
        of_v4 = found.ipv4_mapped
        return str(of_v4 or ipaddress.ip_network((found, 64), strict=False))
    return str(found)


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
