"""Who may: never outside one's own sessions, never what was not given."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainq.app.access import ALL_VERBS, Caller, Verb, may, own_request_key
from brainq.contracts.ids import check_id, check_prefixes, is_within, prefix_upper_bound, sibling_session_id
from brainq.errors import InvalidInput

SEGMENT = st.text("aAbz19._@+=-", min_size=1, max_size=4).map(lambda text: "a" + text)
SESSION = st.lists(SEGMENT, min_size=1, max_size=4).map(":".join)
PREFIX = st.lists(SEGMENT, min_size=1, max_size=3).map(lambda parts: ":".join(parts) + ":")
ANYTHING = st.text(max_size=12) | SESSION | PREFIX


def caller(*sessions: str, verbs: frozenset[Verb] = ALL_VERBS) -> Caller:
    return Caller("c", sessions, verbs)


@given(st.lists(PREFIX, min_size=1, max_size=3), ANYTHING)
def test_nobody_reaches_a_session_of_other_tenants(prefixes: list[str], session: str) -> None:
    theirs = {tuple(prefix.rstrip(":").split(":")) for prefix in prefixes}
    parts = session.split(":")
    inside = any(tuple(parts[: len(tenant)]) == tenant and len(parts) > len(tenant) for tenant in theirs)
    assert may(caller(*prefixes), Verb.READ, session) == inside


@given(PREFIX, SESSION)
def test_a_range_of_ids_is_just_what_begins_so(prefix: str, session: str) -> None:
    assert (prefix <= session < prefix_upper_bound(prefix)) == is_within([prefix], session)


@given(st.frozensets(st.sampled_from(Verb), min_size=1), st.sampled_from(Verb))
def test_only_the_verbs_that_were_given(verbs: frozenset[Verb], verb: Verb) -> None:
    assert may(caller("acme:", verbs=verbs), verb, "acme:1") == (verb in verbs)
    assert may(caller("*", verbs=verbs), verb, None) == (verb in verbs)


@given(ANYTHING)
def test_a_prefix_that_is_taken_is_the_beginning_of_sessions(value: str) -> None:
    try:
        (kept,) = check_prefixes("sessions", [value])
    except InvalidInput:
        return
    assert kept == value
    assert value == "*" or (value.endswith(":") and check_id("session_id", value + "1"))


@pytest.mark.parametrize(
    ("session", "allowed"),
    [
        ("acme:1", True),
        ("acme:eu:1", True),
        ("acme:", True),
        ("acme", False),
        ("acme2:1", False),
        ("acmé:1", False),
        ("ACME:1", False),
        ("аcme:1", False),  # noqa: RUF001 - a Cyrillic letter
        ("acme\uff1a1", False),  # a full-width colon
        (" acme:1", False),
        ("x:acme:1", False),
        ("*", False),
        ("", False),
        (None, False),
    ],
)
def test_look_alikes_are_others(session: str | None, allowed: bool) -> None:
    assert may(caller("acme:"), Verb.READ, session) is allowed


@given(SESSION, st.text("ab", min_size=1, max_size=27), st.lists(PREFIX, min_size=1, max_size=3))
def test_who_sees_what_is_beside_a_session_sees_the_session(session: str, name: str, prefixes: list[str]) -> None:
    assert is_within(prefixes, sibling_session_id(session, name)) == is_within(prefixes, session)


def test_what_is_beside_a_session_is_an_id_and_never_anybody_elses() -> None:
    name = "c" * 27
    assert sibling_session_id("acme:eu:7", "x") == "acme:eu:x"
    assert sibling_session_id("s1", "x") == "x"
    for session in ("acme:" + "e" * 120 + ":1", "acme:" + "e" * 123, "a" * 126 + ":1"):
        other = sibling_session_id(session, name)
        assert check_id("session_id", other) == other
        assert session.startswith(other.removesuffix(name))
        assert other == name or other.removesuffix(name).endswith(":")


def test_all_is_all_but_no_session() -> None:
    assert may(caller("*"), Verb.READ, "anything")
    assert may(caller("*"), Verb.OPERATE, None)
    assert not may(caller("*"), Verb.READ, "")
    assert caller("*").prefixes is None
    assert caller("acme:", "beta:", "acme:").prefixes == ("acme:", "beta:")


@pytest.mark.parametrize(
    ("sessions", "remedy"),
    [
        (("acme",), r"end it with a colon: 'acme:'"),
        (("",), r"or '\*' for all sessions"),
        ((), r"names no session"),
        ("acme:", r"names no session"),
        ((":",), r"is not a valid prefix"),
        (("acmé:",), r"is not a valid prefix"),
        (("acme: ",), r"is not a valid prefix"),
        (("acme:*",), r"is not a valid prefix"),
        (("acme:\n",), r"is not a valid prefix"),
        (("a" * 127 + ":",), r"is not a valid prefix"),
        (("*", "acme:"), r"give it alone"),
        ((None,), r"is no prefix"),
    ],
)
def test_an_ambiguous_prefix_is_refused_with_the_remedy(sessions: Any, remedy: str) -> None:
    with pytest.raises(InvalidInput, match=remedy) as refused:
        Caller("c", sessions, ALL_VERBS)
    assert refused.value.field == "sessions"


@pytest.mark.parametrize("verbs", [frozenset(), {"write"}, "read", None, {None}])
def test_verbs_are_named_and_known(verbs: Any) -> None:
    with pytest.raises(InvalidInput, match=r"read, submit, configure, steer, decide, operate"):
        Caller("c", ("acme:",), verbs)


def test_plain_words_are_verbs_too() -> None:
    made = Caller("c", cast(Any, ["acme:"]), cast(Any, ["read"]))
    assert made == Caller("c", ("acme:",), frozenset({Verb.READ}))
    assert len({made, Caller("c", ("acme:",), frozenset({Verb.READ}))}) == 1


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 101, None])
def test_a_caller_has_a_name(name: Any) -> None:
    with pytest.raises(InvalidInput, match="name"):
        Caller(name, ("*",), ALL_VERBS)


@given(SESSION, SESSION, SESSION, SESSION)
def test_request_keys_of_two_sessions_never_meet(one: str, other: str, key: str, its: str) -> None:
    tenant = caller("acme:")
    same = own_request_key(tenant, one, key) == own_request_key(tenant, other, its)
    assert same == ((one, key) == (other, its))
    assert check_id("request_key", own_request_key(tenant, one, key))
    assert own_request_key(caller("*"), one, key) == key
