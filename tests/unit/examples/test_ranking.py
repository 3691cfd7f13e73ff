"""Which notes are about a query."""

from __future__ import annotations

import pytest

from examples.vault.note import Note
from examples.vault.ranking import excerpt, rank, shortened, words
from examples.vault.vault import SHIPPED_NOTES, Vault


def test_words_are_compared_without_case_plurals_and_empty_words() -> None:
    assert words("The Retries of my KEYS, at http://keys.example/retry") == ["retry", "key"]


def test_a_rare_word_weighs_more_than_a_common_one() -> None:
    notes = [Note("a.md", "boat boat boat"), Note("b.md", "boat tariff"), Note("c.md", "boat")]
    assert rank(notes, "boat tariff")[0][0].path == "b.md"


def test_a_title_weighs_more_than_a_mention() -> None:
    notes = [Note("a.md", "# Other\n\nsoil, once"), Note("b.md", "# Soil\n\nnothing else")]
    assert [note.path for note, _ in rank(notes, "soil")] == ["b.md", "a.md"]


@pytest.mark.parametrize("query", ["", "the of", "zebra", "?!"])
def test_what_no_note_holds_finds_nothing(query: str) -> None:
    assert rank([Note("a.md", "boat")], query) == []


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("checkout rewrite", "projects/checkout-rewrite.md"),
        ("idempotency keys", "reference/idempotency-keys.md"),
        ("moisture in the tomato boxes", "projects/balcony-garden.md"),
        ("who is Grace", "people/grace-obi.md"),
    ],
)
def test_the_shipped_notes_are_found(query: str, path: str) -> None:
    assert rank(Vault(SHIPPED_NOTES).notes(), query)[0][0].path == path


def test_an_excerpt_is_the_piece_that_fits_without_marks() -> None:
    note = Note("a.md", "# Keys\n\nfirst\n\n- [ ] plain\n- [x] a key for [[people/ann]]\n  on two lines\n")
    assert excerpt(note, "key") == "a key for ann on two lines"
    assert excerpt(Note("b.md", "# Only a heading"), "key") == ""


def test_a_long_text_is_cut_between_words() -> None:
    assert shortened("one two three", 9) == "one two…"
