"""Reading a message costs no more than its length: whoever writes it must not be able to stop a finalizer."""

from __future__ import annotations

import time

import pytest

from brainq.finalize.extract_rules import RuleMemoryExtractor
from brainq.finalize.own_words import MOST_CHARS, own_sentences
from brainq.finalize.words import sentences
from tests.unit.finalize.support import recorded

MOST_S = 1.0  # of the processor; what costs no more than its length takes a tenth of it

COSTLY = {
    "empty lines": "\n",
    "blank lines": " \n",
    "initials": "A. ",
    "abbreviations": "e.g. ",
    "angle quotes that stay open": "\N{LEFT-POINTING DOUBLE ANGLE QUOTATION MARK}",
    "low quotes that stay open": "\N{DOUBLE LOW-9 QUOTATION MARK}",
    "quotes that stay open": "\N{LEFT DOUBLE QUOTATION MARK}",
    "single quotes that stay open": " \N{LEFT SINGLE QUOTATION MARK}",
    "apostrophes": " 'a",
    "tags that stay open": "<aaaa",
    "many tags": "<a ",
    "backticks": "`",
    "work without a colon": "fix ",
    "colons": "a: ",
    "marks without a space": '."',
    "marks of sentences": ".)",
}


@pytest.mark.parametrize("piece", COSTLY.values(), ids=COSTLY.keys())
def test_a_message_made_to_be_costly_is_read_in_time(piece: str) -> None:
    message = piece * (MOST_CHARS // len(piece))
    before = time.process_time()
    own_sentences(message)
    sentences(message)
    RuleMemoryExtractor().extract_turn(recorded(message))
    assert time.process_time() - before < MOST_S


def test_one_long_word_in_a_tag_is_read_in_time() -> None:
    before = time.process_time()
    own_sentences("<" + "a" * MOST_CHARS)
    assert time.process_time() - before < MOST_S


def test_a_quote_that_stays_open_is_quoted_to_its_end() -> None:
    said = "I live in Kiel. \N{LEFT-POINTING DOUBLE ANGLE QUOTATION MARK}I live in Rome. I like it."
    assert own_sentences(said) == ["I live in Kiel."]
    assert own_sentences("I like \N{LEFT DOUBLE QUOTATION MARK}word") == []


def test_empty_lines_before_a_quoted_line_are_no_part_of_it() -> None:
    assert own_sentences("I live in Kiel.\n\n\n  > I live in Rome.\n\nI like it.") == [
        "I live in Kiel.",
        "I like it.",
    ]


def test_an_abbreviation_far_into_a_line_ends_no_sentence() -> None:
    text = f"I saw {'many ' * 40}boats with Dr. Smith."
    assert sentences(text) == [text]
