"""Every public verb that writes leaves a row in the audit log, or states why not; and every verb takes the one path."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import brainq.client
from brainq.app.access.tokens import Tokens
from brainq.client import async_client, async_handle, bulk_run, handle, retries, runtime_state
from brainq.client.async_handle import async_action, async_lookup
from brainq.client.connection import Connection
from brainq.client.operator import Operator
from brainq.contrib.encryption.content_keys import ContentKeys

CLIENT = Path(brainq.client.__file__).parent
READ_ONLY = {
    ("ContentKeys", "list"),
    ("ContentKeys", "in_clear"),
    ("ContentKeys", "left"),
    ("ContentKeys", "check"),
    ("ContentKeys", "reencrypt"),  # the content stays the same
    ("Tokens", "list"),
    ("Tokens", "check"),  # that the token was used is part of its row
    ("Tokens", "cached_caller"),
    ("Tokens", "is_known"),
    ("Operator", "find"),
    ("Operator", "turns"),
    ("Operator", "sessions"),
    ("Operator", "facts"),
    ("Operator", "timeline"),
    ("Operator", "call"),
    ("Operator", "approvals"),
    ("Operator", "deliveries"),
    ("Operator", "given_up"),
    ("Operator", "stops"),
    ("Operator", "close"),
}
BY_HAND = {
    "submit": "writes",
    "run": "by other verbs",
    "bulk": "writes",
    "close": "local",
    "session": "local",
    "state": "local",
    "flag": "local",
    "result": "reads",
    "wait": "reads",
    "events": "reads",
    "text": "by other verbs",
    "iterate_turns": "by other verbs",
    "iterate_sessions": "by other verbs",
    "iterate_approvals": "by other verbs",
}
"""Verbs of twins that neither `async_action` nor `async_lookup` makes."""
ACTING = ("do", "do_in_all", "do_in_each", "_do", "record", "record_act", "_recorded")
_IS_ACTION = async_action(Connection.read).__code__  # type: ignore[attr-defined]
_IS_LOOKUP = async_lookup(Connection.read).__code__  # type: ignore[attr-defined]
HELPERS = {
    **{name: member for of in (handle, retries) for name, member in vars(of).items() if inspect.isfunction(member)},
    "begin": bulk_run.BulkRun.begin,
    "start": bulk_run.BulkRun.begin,
    "submit": brainq.Client.submit,
    "cancel": brainq.Client.cancel,
    "add_tokens": runtime_state.TurnBudget.add_tokens,
}


def acts(owner: type, verb: Any, seen: frozenset[str] = frozenset()) -> bool:
    """Return whether the verb, or what it calls of its own class and of `HELPERS`, goes through an acting method."""
    names = set(code_names(inspect.unwrap(verb).__code__))
    if names & set(ACTING):
        return True
    for name in names - seen:
        for called in (inspect.getattr_static(owner, name, None), HELPERS.get(name)):
            if isinstance(called, FunctionType) and acts(owner, called, seen | names):
                return True
    return False


def code_names(code: Any) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if inspect.iscode(constant):
            yield from code_names(constant)


def twins() -> Iterator[tuple[type, str, Any, str]]:
    """Yield each class with a twin, its verb's name, the verb, and what the twin takes the verb for."""
    for module in (async_client, async_handle):
        for name, twin in vars(module).items():
            if not (name.startswith("Async") and inspect.isclass(twin) and twin.__module__ == module.__name__):
                continue
            owner: Any = getattr(brainq, name.removeprefix("Async"), None) or getattr(async_client, name[5:])
            for verb, made in inspect.getmembers(twin, inspect.isfunction):
                if not verb.startswith("_") and hasattr(owner, verb):
                    yield owner, verb, getattr(owner, verb), kind_of(made)


def kind_of(made: Any) -> str:
    while made is not None:
        if made.__code__ is _IS_ACTION:
            return "writes"
        if made.__code__ is _IS_LOOKUP:
            return "reads"
        made = getattr(made, "__wrapped__", None)
    return ""


def test_a_verb_acts_exactly_if_its_twin_takes_it_for_an_action() -> None:
    found = list(twins())
    assert len(found) > 100
    kinds = [(owner, name, verb, kind or BY_HAND[name]) for owner, name, verb, kind in found]
    wrong = [
        f"{owner.__name__}.{name} {kind}"
        for owner, name, verb, kind in kinds
        if kind in ("writes", "reads") and acts(owner, verb) != (kind == "writes")
    ]
    assert not wrong


def test_every_verb_without_a_twin_acts_or_only_reads() -> None:
    for owner in (ContentKeys, Tokens, Operator):
        for name, verb in inspect.getmembers(owner, inspect.isfunction):
            if not name.startswith("_"):
                assert acts(owner, verb) != ((owner.__name__, name) in READ_ONLY), f"{owner.__name__}.{name}"


def test_verbs_reach_redis_and_sql_only_through_their_connection() -> None:
    local = r"home\.brains|close\b|opened\b|named\b|names\b|home\.warm_up"
    around = re.compile(rf"_connection\.cells\.(?!{local})\w+[\w.]*")
    wrong = [
        f"{path.name}: {found}"
        for path in CLIENT.rglob("*.py")
        if path.name != "connection.py"
        for found in around.findall(path.read_text())
    ]
    assert not wrong
