"""Webhooks as they are configured, whom they are told of, and when again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from brainq.adapters.sql.repositories.deliveries import approval_deliveries, ending_deliveries
from brainq.contracts.people import ApprovalRequest
from brainq.contracts.status import Effect, Ending, StopReason
from brainq.contracts.turn import TurnResult
from brainq.contracts.webhook import Webhook, parse_webhooks
from brainq.engine.people.webhook_delivery import LATER, MAX_TRIES
from brainq.errors import InvalidInput, SetupError
from brainq.runtime.settings.deployment import load_settings

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
HERE = {"url": "https://example.com/hook", "secret": SECRET}


def ended(session: str, **more: Any) -> TurnResult:
    return TurnResult(
        turn_id="t1", session_id=session, ending=Ending.COMPLETED, stop_reason=StopReason.ANSWERED, **more
    )


def asked(args_hash: str = "h", session: str = "acme:1") -> ApprovalRequest:
    return ApprovalRequest(
        session_id=session,
        turn_id="t1",
        call_id="c1-0",
        tool="refund",
        effect=Effect.NETWORK,
        args_hash=args_hash,
        args_json='{"secret": "canary"}',
        reason="canary",
        timeout_s=60.0,
    )


def hook(url: str = "https://a/", **more: Any) -> Webhook:
    return Webhook(url, b"s" * 32, **more)


def test_what_is_left_out_is_all() -> None:
    (one,) = parse_webhooks(json.dumps([HERE]))
    assert (one.events, one.sessions) == (("turn.ended", "approval.requested", "budget.nearly_spent"), ("*",))
    assert len(one.secret) == 24
    assert "MfKQ" not in repr(one)
    assert parse_webhooks("") == parse_webhooks("[]") == ()


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("no json", "it is not JSON"),
        ('{"url": "https://a"}', "a JSON list of objects"),
        ([{**HERE, "urls": 1}], "'urls' is not one of url, secret"),
        ([{"secret": SECRET}], r"webhooks\[0\].url"),
        ([HERE, {**HERE, "url": "ftp://a/"}], r"webhooks\[1\].url"),
        ([{**HERE, "url": "https://u:p@a/"}], r"webhooks\[0\].url"),
        ([{**HERE, "url": "https:///x"}], r"webhooks\[0\].url"),
        ([{**HERE, "url": "https://a:99999/"}], r"webhooks\[0\].url"),
        ([{**HERE, "url": "https://a/x y"}], r"webhooks\[0\].url"),
        ([{**HERE, "url": "https://a/\r\nx: y"}], r"webhooks\[0\].url"),
        ([{**HERE, "url": "https://a/#x"}], r"webhooks\[0\].url"),
        ([HERE, HERE], r"webhooks\[1\].url.*each url once"),
        ([{**HERE, "secret": "hunter2"}], r"webhooks\[0\].secret.*openssl rand"),
        ([{**HERE, "secret": "whsec_aHVudGVyMg=="}], r"webhooks\[0\].secret"),
        ([{**HERE, "secret": "whsec_***"}], r"webhooks\[0\].secret"),
        ([{**HERE, "events": []}], r"webhooks\[0\].events.*turn.ended, approval.requested"),
        ([{**HERE, "events": ["turn.began"]}], r"webhooks\[0\].events"),
        ([{**HERE, "sessions": ["acme"]}], r"webhooks\[0\].sessions.*'acme:'"),
    ],
)
def test_a_wrong_one_is_named_and_not_shown(given: object, named: str) -> None:
    text = given if isinstance(given, str) else json.dumps(given)
    with pytest.raises(InvalidInput, match=named) as refused:
        parse_webhooks(text)
    assert "hunter2" not in str(refused.value)
    assert SECRET not in str(refused.value)
    with pytest.raises(SetupError, match="BRAINQ_WEBHOOKS") as wrong:
        load_settings(webhooks=text)
    assert SECRET not in str(wrong.value)


def test_settings_hide_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAINQ_WEBHOOKS", json.dumps([HERE]))
    settings = load_settings()
    assert SECRET not in repr(settings) + settings.model_dump_json()
    assert len(parse_webhooks(settings.webhooks.get_secret_value())) == 1


def test_who_is_told_of_an_ending() -> None:
    hooks = [
        hook("https://all/"),
        hook("https://acme/", sessions=("acme:",)),
        hook("https://approvals/", events=("approval.requested",)),
    ]
    assert [new.url for new in ending_deliveries(hooks, ended("acme:1"))] == ["https://all/", "https://acme/"]
    assert [new.url for new in ending_deliveries(hooks, ended("acme2:1"))] == ["https://all/"]
    assert [new.url for new in approval_deliveries(hooks, [asked()])] == [one.url for one in hooks]
    assert ending_deliveries([], ended("acme:1")) == []


def test_no_content_is_told() -> None:
    (told,) = ending_deliveries([hook()], ended("s", text="canary", error="canary", diff="canary"))
    (about,) = approval_deliveries([hook()], [asked()])
    assert "canary" not in repr((told, about))
    assert json.loads(told.data_json) == {
        "turn_id": "t1",
        "session_id": "s",
        "ending": "completed",
        "stop_reason": "answered",
    }
    assert json.loads(about.data_json)["approval_id"] == "t1-c1-0"


def test_one_message_is_one_id() -> None:
    first, again, other = (approval_deliveries([hook()], [asked(args)])[0] for args in ("h", "h", "h2"))
    assert first == again
    assert first.message_id != other.message_id
    assert ending_deliveries([hook()], ended("s"))[0].message_id not in (first.message_id, other.message_id)
    assert len({new.message_id for new in ending_deliveries([hook("https://a/"), hook("https://b/")], ended("s"))}) == 1


def test_waits_grow_to_a_limit_with_jitter() -> None:
    plain = [LATER.after_s(tries, 0.5) for tries in range(1, MAX_TRIES)]
    assert plain[:4] == [5.0, 15.0, 45.0, 135.0]
    assert plain == sorted(plain)
    assert max(plain) == LATER.longest_s
    least_h, most_h = (sum(LATER.after_s(tries, by) for tries in range(1, MAX_TRIES)) / 3600 for by in (0, 1))
    assert (round(least_h), round(most_h)) == (17, 28)
    assert (LATER.after_s(1, 0), LATER.after_s(1, 1)) == (3.75, 6.25)
