"""The errors of a gateway's responses: the same classes that Client raises, or GatewayRefused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from brainq import errors

TYPE_PREFIX = "urn:brainq:problem:"
_CLASSES = {kind.word: cls for cls, kind in errors.ERROR_KINDS.items()}
_NOT_BEGUN = frozenset({"stopping", "streams-full", "too-many-requests", "too-many-streams"})
"""The words of refusals that come before a gateway does anything of a request."""
_PASSING = (errors.Unreachable, errors.TenantMoved, errors.TenantMoving)
_PASSING_STATUSES = (502, 503, 504)
_FACTS = ("request_key", "client_message_id", "live_turn_id", "state")
MAX_RETRY_AFTER_S = 60.0


class GatewayRefused(errors.BrainqError):
    """A gateway refused a request for a reason that exists only over HTTP, such as a token without a right.

    status   the HTTP status
    word     the last part of the problem's `type`; empty if the answer is not from a gateway
    """

    def __init__(self, message: str, *, status: int, word: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.word = word


@dataclass(frozen=True, slots=True)
class Refusal:
    """A response that is no success.

    error: as the caller gets it.
    is_passing: the same request may succeed in a moment.
    is_undone: the request certainly changed nothing.
    retry_after_s: how long the gateway asks to wait, or None.
    """

    error: errors.BrainqError
    is_passing: bool
    is_undone: bool
    retry_after_s: float | None


def read_refusal(status: int, retry_after: str, body: bytes, missing: type[errors.NotFound]) -> Refusal:
    """Return what a response means. Pure.

    missing: the error if the gateway has nothing with the id of the request.
    """
    problem = _read_problem(body)
    word = str(problem.get("type", "")).removeprefix(TYPE_PREFIX)
    detail = str(problem.get("detail") or f"the answer was {status}, and not from a brainq gateway")
    cls = missing if word == "not-found" else _CLASSES.get(word)
    wait_s = min(float(retry_after), MAX_RETRY_AFTER_S) if retry_after.isdigit() else None
    if cls is None:
        error: errors.BrainqError = GatewayRefused(detail, status=status, word=word)
        is_passing = word in _NOT_BEGUN or word == "short" or (not word and status in _PASSING_STATUSES)
        return Refusal(error, is_passing, word in _NOT_BEGUN, wait_s)
    return Refusal(_made(cls, detail, problem), issubclass(cls, _PASSING) and status == 503, False, wait_s)


def _read_problem(body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    is_ours = isinstance(found, dict) and str(cast("dict[str, Any]", found).get("type", "")).startswith(TYPE_PREFIX)
    return cast("dict[str, Any]", found) if is_ours else {}


def _made(cls: type[errors.BrainqError], detail: str, problem: Mapping[str, Any]) -> errors.BrainqError:
    """Return an error with the gateway's message. The constructors of some classes would write another one."""
    if issubclass(cls, errors.InvalidInput):
        field = str(problem.get("field") or "body")
        return cls(field, detail.removeprefix(f"{field}: "))
    cls = (
        errors.Unreachable if issubclass(cls, errors.CellUnreachable) else cls
    )  # the gateway does not tell which cell it is
    error = cls.__new__(cls)
    error.args = (detail,)
    for name in _FACTS:
        setattr(error, name, str(problem.get(name) or ""))
    for name, value in cast("dict[str, Any]", problem.get("facts") or {}).items():
        setattr(error, name, datetime.fromisoformat(value) if name == "ends_at" else value)
    return error
