"""Cutting text to a length."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from brainq.text.estimate import estimate_text
from brainq.text.shorten import shortened, shortened_to_tokens
from tests.unit.turn.conversations import unhurried


def test_the_beginning_and_the_end_stay() -> None:
    text = "BEGIN" + "x" * 1000 + "END"
    short = shortened(text, 300)
    assert short.startswith("BEGINxxx")
    assert short.endswith("xxxEND")
    assert "[... 708 characters or more left out ...]" in short


@unhurried
@given(st.text(max_size=300), st.integers(0, 200))
def test_never_longer_than_allowed(text: str, most: int) -> None:
    assert len(shortened(text, most)) <= most or shortened(text, most) == text
    assert estimate_text(shortened_to_tokens(text, most)) <= most
    if len(text) <= most:
        assert shortened(text, most) == text
