"""The audit log's one entrance: verbs that are acts are wrapped once, and what they did is a row in SQL."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, TypeVar

from brainq.contracts.act import ACTS
from brainq.contracts.actor import current_actor
from brainq.contracts.ids import split_call_id
from brainq.errors import InvalidInput
from brainq.observe.logs import logger
from brainq.store.store import Store

log = logger("brainq.store")
C = TypeVar("C", bound=type)
SUBJECTS = (
    *("kind", "name", "tenant", "mode", "approval_id", "call_id", "hold_id"),
    *("memory", "scope", "session", "delivery", "step", "build", "to"),
)
"""Arguments that say to what it was done. None of them holds content, or a secret."""
NOTHING_DONE = (False, None, 0, "ended")
MAX_REASON_CHARS = 500
MAX_NAME_CHARS = 200
_is_inside: ContextVar[bool] = ContextVar("brainq_in_an_act", default=False)


def records_acts(cls: C) -> C:
    """Make the class's verbs that ACTS names leave a row behind them; the others stay as they are. An object of the
    class has a `_store`, or `_cells` and, where it is about one session, its `session_id`."""
    for name, act in ACTS.get(cls.__name__, {}).items():
        setattr(cls, name, _recorded(act, vars(cls)[name]))
    return cls


def _recorded(act: str, verb: Callable[..., Any]) -> Callable[..., Any]:
    parameters = tuple(inspect.signature(verb).parameters)

    @functools.wraps(verb)
    def recording(*args: Any, **named: Any) -> Any:
        if _is_inside.get():
            return verb(*args, **named)  # another act does it
        token = _is_inside.set(True)
        try:
            result = verb(*args, **named)
        finally:
            _is_inside.reset(token)
        if result not in NOTHING_DONE or act == "resume":  # that gives the turn that begins, if any
            _record(act, args[0], {**dict(zip(parameters, args, strict=False)), **named}, result)
        return result

    return recording


def _record(act: str, owner: Any, given: Mapping[str, Any], result: Any) -> None:
    """The act is done: where its row cannot be written that is logged, and the act is valid."""
    try:
        row = _row(act, owner, given, result)
        if row["reason"] and row["turn_id"] and _redacts(owner, row["session_id"], row["turn_id"]):
            row["reason"] = ""
        _store_of(owner, row["session_id"]).acts.add(**row)
    except Exception as failure:
        log.error("an act is not in the audit log", act=act, failure=failure)


def _row(act: str, owner: Any, given: Mapping[str, Any], result: Any) -> dict[str, str]:
    """Names and ids, and the reason that was given, which may quote what a turn holds."""
    actor = current_actor()

    def found(name: str) -> str:
        return str(given.get(name) or getattr(owner, name, "") or getattr(result, name, "") or "")

    names = [] if act == "erase" else [given.get(name) for name in SUBJECTS]  # nothing is left of what was erased
    subject = " ".join(str(name) for name in names if isinstance(name, str | int) and name)
    return {
        "who": str(given.get("by") or actor.name)[:MAX_NAME_CHARS],
        "source": actor.source,
        "act": act,
        "session_id": found("session_id"),
        "turn_id": found("turn_id") or _turn_of(subject),
        "subject": (subject or found("token_id"))[:MAX_REASON_CHARS],
        "reason": str(given.get("reason") or "")[:MAX_REASON_CHARS],
    }


def _turn_of(approval_id: str) -> str:
    try:
        return split_call_id(approval_id)[0]
    except InvalidInput:
        return ""


def _store_of(owner: Any, session_id: str) -> Store:
    if (store := getattr(owner, "_store", None)) is not None:
        return store
    if (client := getattr(owner, "_client", None)) is not None:  # an Operator's
        owner = client
    cells = owner._cells
    return (cells.settle(session_id) if session_id else cells.home).store


def _redacts(owner: Any, session_id: str, turn_id: str) -> bool:
    """Whether the turn's brain has SQL keep no content."""
    cells = getattr(owner, "_client", owner)._cells
    wiring = cells.settle(session_id) if session_id else cells.of_turn(turn_id)
    return wiring.turn_brains.redacts(turn_id)
