"""Nothing that looks like a secret is remembered."""

from __future__ import annotations

import pytest

from brainq.engine.memory.words import looks_secret


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
        "The user pays 20% tips.",
        "The user's meeting is at 10:30 on 2026-03-09.",
        "internationalization and counterrevolutionaries",
    ],
)
def test_what_is_none(text: str) -> None:
    assert not looks_secret(text)
