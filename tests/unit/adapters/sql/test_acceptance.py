"""When two submits are one turn."""

from __future__ import annotations

from typing import Any

import pytest

from brainq.adapters.sql.repositories.turns import content_hash
from brainq.contracts.turn import LimitsOverride, ParentCall, TurnRequest


def request(**more: Any) -> TurnRequest:
    values: dict[str, Any] = {"turn_id": "turn-1", "session_id": "s1", "user_message": "hello"}
    return TurnRequest(**values | more)


WITH_OPTIONS = request(
    user_message="caf\u00e9",
    request_key="k",
    model="m",
    limits=LimitsOverride(max_steps=3),
    metadata={"b": [1, None], "a": {"x": 1.5}},
    prompt_tags=("a", "b"),
)


@pytest.mark.parametrize(
    ("sent", "digest"),
    [
        (request(), "9eaee2ec481466242414376d98dac1991a5b1e44a894ffa5e2a99ac08089d6bb"),
        (WITH_OPTIONS, "b8852061fe265a823760006509b17eb5ee49aa3e8ca9dc2bb8588dd4f25c60cb"),
    ],
    ids=["plain", "with options"],
)
def test_the_hashes_that_databases_hold_do_not_change(sent: TurnRequest, digest: str) -> None:
    """They were made before later fields were there: a submit that is sent again meets them after an upgrade."""
    assert content_hash(sent) == digest


def test_a_field_at_its_default_is_no_content() -> None:
    fields = TurnRequest.model_fields
    said = {name: field.default for name, field in fields.items() if not field.is_required()}

    assert content_hash(request(**said)) == content_hash(request())


@pytest.mark.parametrize(
    "other",
    [
        {"on_busy": "steer"},
        {"kind": "review"},
        {"priority": "high"},
        {"seed": "empty"},
        {"parent": ParentCall(session_id="s0", turn_id="turn-0", call_id="c1-0")},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_field_that_is_set_is_content(other: dict[str, Any]) -> None:
    assert content_hash(request(**other)) != content_hash(request())


def test_ids_are_no_content() -> None:
    assert content_hash(request(turn_id="turn-2", request_key="k")) == content_hash(request())
