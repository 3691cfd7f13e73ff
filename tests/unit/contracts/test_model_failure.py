"""Errors of turns whose model could not be asked: the reason is read from the text."""

from __future__ import annotations

import pytest

from brainq.contracts.model import ModelFailure, parse_failure, render_failure


@pytest.mark.parametrize("kind", ["too_long", "over_limit", "filtered", "rate_limited", "quota"])
@pytest.mark.parametrize(("said", "read"), [(None, None), (0.2, 1), (20.5, 21)])
def test_what_was_said_is_read(kind: str, said: float | None, read: int | None) -> None:
    text = render_failure(kind, "openai: HTTP 4xx (again in 9 s)", said)
    assert text.endswith(": openai: HTTP 4xx (again in 9 s)")
    assert parse_failure(text) == ModelFailure(kind, read)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("error", [None, "", render_failure("server", "openai: HTTP 500"), "It is too_long"])
def test_any_other_error_is_as_it_was(error: str | None) -> None:
    assert parse_failure(error) is None
