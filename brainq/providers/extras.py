"""Headers and parameters of a service's own, which only code may give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brainq.contracts.options import ModelOptions


def with_extras(body: dict[str, Any], options: ModelOptions) -> dict[str, Any]:
    """An SDK's arguments with the options' headers, and with their parameters merged into the request's JSON."""
    if options.extra_headers:
        body = {**body, "extra_headers": dict(options.extra_headers)}
    if options.extra_body:
        body = {**body, "extra_body": _merged(body.get("extra_body") or {}, options.extra_body)}
    return body


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(below)
    for name, value in above.items():
        known = made.get(name)
        if isinstance(known, Mapping) and isinstance(value, Mapping):
            value = _merged(known, value)
        made[name] = value
    return made
