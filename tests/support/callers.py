"""The callers of gateways in tests. `Bearer reader` may only read."""

from __future__ import annotations

from collections.abc import Mapping

from brainq.app.access import Caller, Verb

READER = Caller("reader", ("*",), frozenset({Verb.READ}))


def authenticate(headers: Mapping[str, str]) -> Caller | None:
    return READER if headers.get("authorization") == "Bearer reader" else None
