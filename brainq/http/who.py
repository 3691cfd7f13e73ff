"""Who asks: by a bearer token, by an app's own hook, or, on loopback without either, this machine's user."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import ipaddress
import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from brainq.access import EVERYTHING, Caller, Tokens
from brainq.access.tokens import KEPT_S
from brainq.errors import SetupError
from brainq.settings import Settings

Authenticate = Callable[[Mapping[str, str]], Awaitable[Caller | None]]
"""From a request's headers, their names in lower case, to who asks; None: nobody that is known."""

LOCAL = Caller("local", ("*",), EVERYTHING)
"""Whoever can reach loopback, where nobody is asked who he is."""


@dataclass(frozen=True, slots=True)
class Who:
    """How callers are known. `is_open`: nobody is asked, so nobody but this machine may reach the gateway."""

    authenticate: Authenticate
    is_open: bool
    how: str


def who_asks(settings: Settings, tokens: Tokens) -> Who:
    """The hook of BRAINQ_HTTP_AUTH; else tokens, once any was made; else nobody is asked.

    Raises SetupError for a hook that cannot be loaded.
    """
    if settings.http_auth:
        return Who(_by_hook(settings.http_auth), False, f"{settings.http_auth} says who asks")
    by_token = _by_token(tokens)
    if tokens.list():
        return Who(by_token, False, "callers bring a token")

    first = _FirstToken(tokens)

    async def by_token_or_local(headers: Mapping[str, str]) -> Caller | None:
        if "authorization" in headers or await first.is_made():
            return await by_token(headers)
        return LOCAL

    return Who(by_token_or_local, True, "whoever is on this machine may do everything")


def require_loopback(who: Who, host: str) -> None:
    """Raise SetupError where others could reach a gateway that asks nobody who he is."""
    if who.is_open and not is_loopback(host):
        raise SetupError(
            f"--host {host}: others could reach it, and there is no token yet and no BRAINQ_HTTP_AUTH, so nobody "
            "would be asked who he is; make a token first (`brainq token create`), or leave it on 127.0.0.1"
        )


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class _FirstToken:
    """Whether any token was made yet; a no is believed for KEPT_S."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._is_made = False
        self._until = 0.0

    async def is_made(self) -> bool:
        """Raises Unreachable while SQL is away."""
        if not self._is_made and time.monotonic() >= self._until:
            self._is_made = bool(await asyncio.to_thread(self._tokens.list))
            self._until = time.monotonic() + KEPT_S
        return self._is_made


def _by_token(tokens: Tokens) -> Authenticate:
    async def by_token(headers: Mapping[str, str]) -> Caller | None:
        scheme, _, text = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not text.strip():
            return None
        return await asyncio.to_thread(tokens.check, text.strip())

    return by_token


def _by_hook(reference: str) -> Authenticate:
    hook = _load(reference)

    async def by_hook(headers: Mapping[str, str]) -> Caller | None:
        if inspect.iscoroutinefunction(hook):
            found = await hook(headers)
        else:
            found = await asyncio.to_thread(hook, headers)
        if found is not None and not isinstance(found, Caller):
            raise TypeError(f"{reference} gave {type(found).__name__}, not a brainq.access.Caller or None")
        return found

    return by_hook


def _load(reference: str) -> Any:
    module, _, name = reference.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise SetupError(
            f"BRAINQ_HTTP_AUTH: {reference!r} cannot be loaded ({error}); name a function as module:function"
        ) from error
    if not callable(found):
        raise SetupError(f"BRAINQ_HTTP_AUTH: {reference!r} is no function; name one as module:function")
    return found
