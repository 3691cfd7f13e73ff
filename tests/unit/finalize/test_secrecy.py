"""Nothing that looks like a secret is remembered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainq.finalize.secrecy import is_card_number, looks_secret


@pytest.mark.parametrize(
    "text",
    [
        "my password is x",
        "The PIN is 1234",
        "api_key = abc",
        "the access token: abc",
        "token ghp_abcdefghijklmnop1234",
        "AKIAIOSFODNN7EXAMPLE",
        "sk-proj-abcdefghijk",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIi",
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        "https://bob:hunter2@example.com/x",
        "4111 1111 1111 1111",
        "5500-0000-0000-0004",
        "378282246310005",
        "078-05-1120",
        "DE89 3704 0044 0532 0130 00",
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
        "it is Tr0ub4dor&3",
    ],
)
def test_secrets(text: str) -> None:
    assert looks_secret(text)


@pytest.mark.parametrize(
    "text",
    [
        "The user prefers tea.",
        "The user's phone number is +47 22 33 44 55.",
        "The user's e-mail is anna.smith@example.com.",
        "The staging server is called blue-heron-staging-01.",
        "The user reads https://example.com/a/very/long/path-with-7-numbers-2024-11-02.html every day.",
        "The user counts tokens and cache keys.",
        "The order has the number 1234567890123.",
        "The user pays 20% tips.",
        "The user's meeting is at 10:30 on 2026-03-09.",
        "internationalization and counterrevolutionaries",
    ],
)
def test_what_is_none(text: str) -> None:
    assert not looks_secret(text)


def luhn(body: list[int]) -> int:
    """The check digit, worked out the other way about: try all ten."""
    for last in range(10):
        total = 0
        for place, digit in enumerate(reversed([*body, last])):
            total += digit if place % 2 == 0 else (2 * digit - 9 if digit > 4 else 2 * digit)
        if total % 10 == 0:
            return last
    raise AssertionError


@given(st.lists(st.integers(0, 9), min_size=12, max_size=18), st.integers(1, 9))
def test_card_numbers_are_told_by_their_check_digit(body: list[int], off: int) -> None:
    right = luhn(body)
    assert is_card_number("".join(map(str, [*body, right])))
    assert not is_card_number("".join(map(str, [*body, (right + off) % 10])))
