"""The words texts are found by."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainq.adapters.sql.text import MAX_QUERY_TERMS, query_terms, scope_term, terms_of

anything = st.text(st.characters(exclude_categories=()), max_size=80)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The user prefers Rust, and C++!", ["user", "prefers", "rust", "c"]),
        ("what is the", []),
        ("", []),
        ("caf\u00e9 CAFE cafe\u0301", ["cafe", "cafe", "cafe"]),
        ("get_user(id=42)", ["user", "id", "42"]),
        ('" OR NEAR/2 * : ( ) - ^', ["near", "2"]),
    ],
)
def test_a_texts_words(text: str, terms: list[str]) -> None:
    assert terms_of(text) == terms


def test_scripts_without_spaces_are_found_by_pairs() -> None:
    assert set(terms_of("日本")) < set(terms_of("我喜欢日本料理"))
    assert len(terms_of("我喜欢日本料理")) == 6


@given(anything)
def test_terms_are_plain_and_the_same_for_every_case(text: str) -> None:
    assert all(re.fullmatch("[a-z0-9]+", term) for term in terms_of(text))
    assert terms_of(text.upper()) == terms_of(text.upper().lower())


def test_of_a_long_query_the_beginning_and_the_end_count() -> None:
    query = " ".join(f"word{number}" for number in range(10_000))

    found = query_terms(query)

    assert len(found) == MAX_QUERY_TERMS
    assert (found[0], found[-1]) == ("word0", "word9999")


def test_a_repeated_word_is_asked_for_once() -> None:
    assert query_terms("rust " * 100_000) == ["rust"]


@given(anything)
def test_a_scope_is_one_term(scope: str) -> None:
    assert re.fullmatch("s[0-9a-f]{16}", scope_term(scope))
