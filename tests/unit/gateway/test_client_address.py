"""The address of a client: behind proxies, as a key, and whether it is this machine's."""

from __future__ import annotations

import asyncio

import pytest
from starlette.types import Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from brainq.gateway.edge.client_address import address_key, client_address, is_loopback, proxy_options
from brainq.settings.http import HttpSettings


@pytest.mark.parametrize(
    ("asked_from", "forwarded", "address"),
    [
        ("10.1.0.7", "192.0.2.1", "192.0.2.1"),
        ("10.1.0.7", "192.0.2.1, 10.1.9.9", "192.0.2.1"),
        ("10.1.0.7", "203.0.113.5, 192.0.2.1", "192.0.2.1"),
        ("10.1.0.7", "", "10.1.0.7"),
        ("192.0.2.9", "192.0.2.1", "192.0.2.9"),
        ("127.0.0.1", "192.0.2.1", "127.0.0.1"),
    ],
)
def test_only_a_trusted_proxy_says_who_asks(asked_from: str, forwarded: str, address: str) -> None:
    seen: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(client_address(scope))

    trusted = proxy_options(HttpSettings(http_proxies="10.1.0.0/16"))["forwarded_allow_ips"]
    headers = [(b"x-forwarded-for", forwarded.encode())] if forwarded else []
    scope = {"type": "http", "scheme": "http", "client": (asked_from, 5000), "headers": headers}
    asyncio.run(ProxyHeadersMiddleware(app, trusted)(scope, None, None))  # type: ignore[arg-type]
    assert seen == [address]


def test_no_proxy_is_trusted_unless_it_is_named() -> None:
    assert proxy_options(HttpSettings(http_proxies="")) == {"proxy_headers": False, "forwarded_allow_ips": []}


def test_a_client_on_a_unix_socket_has_no_address() -> None:
    assert client_address({"type": "http", "client": None}) == ""


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("x" * 9000, ""),
    ],
)
def test_an_address_is_counted_with_all_that_its_owner_has(address: str, counted: str) -> None:
    assert address_key(address) == counted


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost", "LOCALHOST"])
def test_loopback_is_known(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "localhost.evil.example", "", "127.0.0.1.evil"])
def test_nothing_else_is_loopback(host: str) -> None:
    assert not is_loopback(host)
