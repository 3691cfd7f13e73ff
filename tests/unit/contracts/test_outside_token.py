"""Tokens name their call; what is no such token names none."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainq.contracts.call import new_outside_token, parse_outside_token
from brainq.contracts.claim import CallRef
from brainq.contracts.ids import new_turn_id
from brainq.engine.tools.results import MAX_TOKEN_CHARS

LONGEST = CallRef("s" * 128, "t" * 64, "c100-100")


@pytest.mark.parametrize("ref", [CallRef("s", "turn", "c1-0"), CallRef("a:b@c+d=e", new_turn_id(), "c12-3"), LONGEST])
def test_a_token_names_its_call(ref: CallRef) -> None:
    token = new_outside_token(ref)
    assert parse_outside_token(token) == ref
    assert token.startswith("out_")
    assert len(token) <= MAX_TOKEN_CHARS
    assert token != new_outside_token(ref)


def token_of(text: str) -> str:
    return "out_" + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "token",
    [
        "",
        "out_",
        "job-17",
        "out_!!!!",
        "out_\u00e9",
        new_outside_token(LONGEST).removeprefix("out_"),
        token_of("s turn c1-0"),
        token_of("s turn c1-0 short"),
        token_of("s turn c1-0 " + "n" * 22 + " more"),
        token_of("{s} turn c1-0 " + "n" * 22),
        token_of("s t c1-0 " + "n" * 22),
        token_of("s turn c1\u00e9 " + "n" * 22),
        "out_" + base64.urlsafe_b64encode(b"\xff\xfe").decode(),
        "out_" + "A" * 1000,
    ],
)
def test_other_text_names_none(token: str) -> None:
    assert parse_outside_token(token) is None


@given(st.text())
def test_no_text_is_too_odd(text: str) -> None:
    parse_outside_token(text)
    parse_outside_token(f"out_{text}")
