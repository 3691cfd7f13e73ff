"""What `make lint` takes for a sentence, and which words it finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab import words
from lab.words import CODE_CEILINGS, LONGEST, code_counts, faults, sentences, sentences_of_tables

PAGE = """# A heading is not a sentence at all

A paragraph whose `code in a line` is one word. It has [a link](with/an/address.md) too (and a bracket). And more.

```
A program. It is not read.
```

- an item is one
  over two lines
1. and so is this one

| a head of three | b |
|---|---|
| a cell is one | two words |
"""


def test_sentences_are_those_of_paragraphs_and_lists() -> None:
    assert sentences(PAGE) == [
        "A paragraph whose code is one word.",
        "It has [a link] too (and a bracket).",
        "an item is one over two lines",
        "and so is this one",
    ]
    assert sentences_of_tables(PAGE) == ["a head of three", "a cell is one"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("This is no joke.", "not in use: 'is no joke'"),
        ("Whoever comes, comes.", "not in use: 'Whoever'"),
        ("There is no joke, and it is no longer one: `is no`.", ""),
        ("word " * (LONGEST + 1), f"{LONGEST + 1} words in a sentence"),
        ("word " * LONGEST, ""),
        (f"{'word ' * 22}\n\n{'word ' * 22}", "22.0 words a sentence on average"),
    ],
)
def test_faults_are_named(text: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "ROOT", tmp_path)
    (tmp_path / "page.md").write_text(text)
    found = faults(tmp_path / "page.md")
    assert [fault in one for one in found] == ([True] if fault else [])


def test_code_has_no_more_retired_words_than_it_may() -> None:
    over = {kind: count for kind, count in code_counts().items() if count > CODE_CEILINGS[kind]}
    assert over == {}


def test_docstrings_that_begin_otherwise_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "brainq").mkdir()
    (tmp_path / "brainq" / "shop.py").write_text('''"""The shop."""


def one() -> None:
    """What is sold."""


def two() -> None:
    """Return what is sold."""
''')
    monkeypatch.setattr(words, "ROOT", tmp_path)
    assert words.openings() == 1
    assert {rule for rule, count in words.style_counts().items() if count} == {"D401"}


def test_each_ceiling_is_kept() -> None:
    assert [counted for counted, count, most in words.ceilings() if count > most] == []
