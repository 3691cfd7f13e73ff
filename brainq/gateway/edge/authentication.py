"""Authentication by a bearer token, by the app's own hook, or, on loopback without either, as this machine's user."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from brainq.app.access import ALL_VERBS, Caller, Tokens
from brainq.app.access.tokens import KEPT_S
from brainq.errors import SetupError
from brainq.gateway.edge.client_address import is_loopback
from brainq.runtime.processes.threads import as_sync, contained
from brainq.runtime.settings.deployment import Settings

R = TypeVar("R")
CHECK_THREADS = 8
NO_TOKEN_YET = "no caller is admitted until there is a token: brainq token create NAME --sessions PREFIX --verb VERB"
Authenticate = Callable[[Mapping[str, str]], Awaitable[Caller | None]]
"""A function from a request's headers, with names in lower case, to its caller, or None if the caller is unknown."""
LOCAL_CALLER = Caller("local", ("*",), ALL_VERBS)
"""The caller of every request to a gateway on loopback without authentication."""


@dataclass(frozen=True, slots=True)
class Authenticator:
    """The way in which callers are authenticated.

    is_loopback_only   True if no authentication is configured, so only this machine may reach the gateway
    description        a sentence for the operator about who is admitted
    is_known           returns whether a request with these headers was authenticated before; makes no query
    admits_anyone      returns whether any caller could be admitted yet
    """

    authenticate: Authenticate
    is_loopback_only: bool
    description: str
    is_known: Callable[[Mapping[str, str]], bool]
    admits_anyone: Callable[[], Awaitable[bool]]


def make_authenticator(settings: Settings, tokens: Tokens) -> Authenticator:
    """Return an authenticator that uses the hook of BRAINQ_HTTP_AUTH or, if there is none, tokens.

    Until the first token is created, a gateway on loopback needs no authentication, and any other admits nobody.
    Raises SetupError for a hook that cannot be loaded.
    """
    checks = ThreadPoolExecutor(CHECK_THREADS, "brainq-who")
    if settings.http_auth:
        return Authenticator(
            _by_hook(settings.http_auth, checks),
            False,
            f"{settings.http_auth} authenticates the callers",
            is_known=lambda _: True,  # the app limits the cost of its own function
            admits_anyone=_always,
        )
    first, by_token = _TokenExistence(tokens, checks), _by_token(tokens, checks)

    def is_known(headers: Mapping[str, str]) -> bool:
        return tokens.is_known(_bearer_token(headers))

    if tokens.list() or not is_loopback(settings.http_host):
        description = "callers send a token" if tokens.list() else NO_TOKEN_YET
        return Authenticator(by_token, False, description, is_known, first.is_made)

    async def by_token_or_local(headers: Mapping[str, str]) -> Caller | None:
        # Clients of some wires always send a key. It is ignored until the first token is created.
        return await by_token(headers) if await first.is_made() else LOCAL_CALLER

    return Authenticator(
        by_token_or_local,
        True,
        "there is no authentication: any client on this machine may do everything",
        is_known,
        _always,
    )


def local_authenticator() -> Authenticator:
    """Return the authenticator of a server that only the program which started it can reach."""

    async def local(headers: Mapping[str, str]) -> Caller | None:
        return LOCAL_CALLER

    return Authenticator(local, True, "the program that started it may do everything", lambda _: True, _always)


async def _always() -> bool:
    return True


class _TokenExistence:
    """A cached answer to whether any token was ever made. A negative answer is cached for KEPT_S."""

    def __init__(self, tokens: Tokens, checks: Executor) -> None:
        self._tokens = tokens
        self._checks = checks
        self._is_made = False
        self._until = 0.0

    async def is_made(self) -> bool:
        """Return whether a token was made. Raises Unreachable while SQL is unavailable."""
        if not self._is_made and time.monotonic() >= self._until:
            self._is_made = bool(await _in_thread(self._checks, self._tokens.list))
            self._until = time.monotonic() + KEPT_S
        return self._is_made


def _by_token(tokens: Tokens, checks: Executor) -> Authenticate:
    async def by_token(headers: Mapping[str, str]) -> Caller | None:
        text = _bearer_token(headers)
        if not text:
            return None
        return tokens.cached_caller(text) or await _in_thread(checks, tokens.check, text)

    return by_token


def _bearer_token(headers: Mapping[str, str]) -> str:
    """Return the bearer token, or "" if there is none."""
    scheme, _, text = headers.get("authorization", "").partition(" ")
    return text.strip() if scheme.lower() == "bearer" else ""


def _by_hook(reference: str, checks: Executor) -> Authenticate:
    hook = _load_hook(reference)

    async def by_hook(headers: Mapping[str, str]) -> Caller | None:
        if inspect.iscoroutinefunction(hook):
            found = await contained(reference, hook(headers))
        else:
            found = await _in_thread(checks, as_sync(hook), headers)
        if found is not None and not isinstance(found, Caller):
            raise TypeError(f"{reference} returned {type(found).__name__}, not a brainq.access.Caller or None")
        return found

    return by_hook


async def _in_thread(checks: Executor, function: Callable[..., R], *args: Any) -> R:
    return await asyncio.get_running_loop().run_in_executor(checks, function, *args)


def _load_hook(reference: str) -> Any:
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
        raise SetupError(f"BRAINQ_HTTP_AUTH: {reference!r} is not a function; name one as module:function")
    return found
