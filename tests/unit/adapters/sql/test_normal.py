"""When two texts are one memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainq.adapters.sql.text import normalized, normalized_hash

anything = st.text(st.characters(exclude_categories=()), max_size=60)  # lone surrogates, too
words = st.text(st.sampled_from("aZé9ß我"), min_size=1, max_size=6)
between = st.text(st.sampled_from(" \t\n.,;:!?\"'()[]_…\u200b\u3000"), max_size=4).map(lambda text: f" {text}")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The user prefers short answers.", "  the USER prefers   short answers"),
        ("It's \N{LEFT DOUBLE QUOTATION MARK}fine\N{RIGHT DOUBLE QUOTATION MARK}!", "it's 'fine'"),
        ("Stra\u00dfe", "STRASSE"),
        ("\uff26\uff55\uff4c\uff4c width", "full width"),
        ("caf\u00e9", "cafe\u0301"),
        ("half \ud83d", "half \ufffd"),
    ],
)
def test_case_spacing_and_punctuation_do_not_count(one: str, other: str) -> None:
    assert normalized_hash(one) == normalized_hash(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("likes C#", "likes C++"),
        ("likes C", "likes C++"),
        ("5% off", "5 off"),
        ("it is -5 degrees", "it is 5 degrees"),
        ("\u0915\u0940", "\u0915\u0947"),  # Hindi: differ in a vowel sign alone
        ("!", "?"),
        ("loves \U0001f600", "loves \U0001f621"),
        ("caf\u00e9", "cafe"),
    ],
)
def test_what_means_something_counts(one: str, other: str) -> None:
    assert normalized_hash(one) != normalized_hash(other)


@given(anything)
def test_normal_text_is_normal(text: str) -> None:
    assert normalized(normalized(text)) == normalized(text)


@given(st.lists(words, min_size=1, max_size=5), st.data())
def test_words_make_the_text_whatever_stands_between(said: list[str], data: st.DataObject) -> None:
    joined = "".join(word + data.draw(between) for word in said)

    assert normalized(joined.swapcase()) == normalized(" ".join(said))
