"""The address of a client. Behind a trusted proxy, uvicorn reads it from `X-Forwarded-For`.

BRAINQ_HTTP_PROXIES names the trusted proxies. Each proxy appends the address that its request came from, so the header
is read from its end: the last address that belongs to no trusted proxy is the client's, and whatever the client itself
wrote into the header is never reached. `X-Forwarded-Proto` of a trusted proxy counts, too. Both headers are ignored if
they come from any other address.
"""

from __future__ import annotations

import ipaddress
from typing import TypedDict

from starlette.types import Scope

from brainq.runtime.settings.http import HttpSettings, split_list


class ProxyOptions(TypedDict):
    """The proxy options of uvicorn; see `uvicorn.middleware.proxy_headers`."""

    proxy_headers: bool
    forwarded_allow_ips: list[str]


def proxy_options(settings: HttpSettings) -> ProxyOptions:
    """Trust the proxies of BRAINQ_HTTP_PROXIES only. uvicorn's default would also trust one on loopback."""
    return {"proxy_headers": bool(settings.http_proxies), "forwarded_allow_ips": split_list(settings.http_proxies)}


def client_address(scope: Scope) -> str:
    """Return the client's address as trusted proxies report it, or "" for a client on a unix socket."""
    host, _ = scope.get("client") or ("", 0)
    return host


def address_key(address: str) -> str:
    """Return the key under which requests of an address are counted. For IPv6 it is the /64, which one client owns."""
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
