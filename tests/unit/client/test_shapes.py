"""The public classes' shapes: who decides is always named, and an asynchronous twin has the shape of the other."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

import brainq
from brainq import (
    AsyncClient,
    AsyncFlag,
    AsyncHold,
    AsyncMemories,
    AsyncSession,
    AsyncTurnHandle,
    Client,
    Flag,
    Hold,
    Memories,
    Operator,
    Session,
    TurnHandle,
    TurnRuntimeState,
)

TWINS = (
    (Client, AsyncClient),
    (TurnHandle, AsyncTurnHandle),
    (Session, AsyncSession),
    (Hold, AsyncHold),
    (Flag, AsyncFlag),
    (Memories, AsyncMemories),
)


def members(kind: type) -> dict[str, Any]:
    of_classes = [vars(base) for base in reversed(kind.__mro__) if base is not object]
    return {name: member for of in of_classes for name, member in of.items() if not name.startswith("_")}


def verbs() -> Iterator[tuple[str, Any]]:
    for kind in (*(kind for twins in TWINS for kind in twins), Operator, TurnRuntimeState):
        for name, member in members(kind).items():
            if inspect.isfunction(member):
                yield f"{kind.__name__}.{name}", member


def parameters(verb: Any) -> list[tuple[str, Any, Any]]:
    return [(of.name, of.kind, of.default) for of in inspect.signature(verb).parameters.values()][1:]


def test_who_decides_is_given_by_keyword_only() -> None:
    named = {
        name: inspect.signature(verb).parameters["by"].kind
        for name, verb in verbs()
        if "by" in inspect.signature(verb).parameters
    }
    assert {"Client.approve", "Client.deny", "Client.edit", "AsyncClient.deny"} <= set(named)
    assert set(named.values()) == {inspect.Parameter.KEYWORD_ONLY}, named


@pytest.mark.parametrize(("sync", "twin"), TWINS, ids=lambda kind: kind.__name__)
def test_a_twin_has_every_member_in_the_same_shape(sync: type, twin: type) -> None:
    theirs, ours = members(twin), members(sync)
    assert sorted(theirs) == sorted(ours)
    for name, member in ours.items():
        assert isinstance(member, property) == isinstance(theirs[name], property), name
        if inspect.isfunction(member) and not takes_options(theirs[name]):
            assert parameters(theirs[name]) == parameters(member), name


def takes_options(verb: Any) -> bool:
    """`**options: Unpack[SubmitOptions]`, which a type checker compares."""
    return any(of.kind is of.VAR_KEYWORD for of in inspect.signature(verb).parameters.values())


def test_no_public_property_of_a_twin_is_a_coroutine() -> None:
    assert brainq.AsyncSession.is_paused is not None
    for _, twin in TWINS:
        properties = [member for member in members(twin).values() if isinstance(member, property)]
        assert not any(inspect.iscoroutinefunction(member.fget) for member in properties)
