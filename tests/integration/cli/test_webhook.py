"""`brainq webhook`: what was sent, and what is sent again."""

from __future__ import annotations

import json

import pytest

from brainq.cli.doctor.services import check_webhooks
from brainq.client.client import Client
from brainq.client.connection import wiring_of
from brainq.contracts.cell import RowId
from brainq.contracts.webhook import NewDelivery
from brainq.engine.jobs import delivery_key
from brainq.errors import ExitCode
from brainq.runtime.settings.deployment import Settings, load_settings
from tests.support.commands import Brainq

URL = "https://example.com/hook"


@pytest.fixture
def dead(client: Client) -> RowId:
    """The number of a delivery that was given up; another is pending."""
    deliveries = wiring_of(client).store.deliveries
    with wiring_of(client).store.database.transaction() as connection:
        rows = [NewDelivery(f"msg_{turn}", URL, "turn.ended", "s1", turn, "{}") for turn in ("t1", "t2")]
        deliveries.plan(connection, rows)
    claimed = deliveries.claim(URL, 60.0)
    assert claimed is not None
    deliveries.fail(delivery_key(claimed.row), claimed.tries, "HTTP 500", None)
    return claimed.row


def test_what_was_given_up_is_seen_and_sent_again(brainq: Brainq, dead: int) -> None:
    listed = brainq("webhook", "list", "--state", "dead")
    assert all(word in listed.out for word in (str(dead), "dead", "turn.ended", "t1", URL, "HTTP 500"))
    assert "t2" not in listed.out
    (row,) = json.loads(brainq("webhook", "list", "--state", "dead", "--json").out)
    assert (row["row"], row["tries"], row["error"]) == (dead, 1, "HTTP 500")

    again = brainq("webhook", "retry", str(dead))
    assert (again.code, again.err) == (0, "1 delivery will be sent again\n")
    assert brainq("webhook", "list", "--state", "dead").err == "no deliveries in state 'dead'\n"
    assert brainq("webhook", "list", "--json").out.count('"pending"') == 2
    assert brainq("webhook", "retry", str(dead)).code == ExitCode.NOT_FOUND


def test_all_that_are_dead_are_sent_again(brainq: Brainq, dead: int) -> None:
    assert json.loads(brainq("webhook", "retry", "all", "--json").out) == {"retried": 1}
    nothing = brainq("webhook", "retry", "all")
    assert (nothing.code, nothing.err) == (0, "no delivery is dead\n")


@pytest.mark.parametrize("wrong", [("list", "--state", "odd"), ("retry", "x"), ("retry", "-1"), ("retry", "9" * 30)])
def test_wrong_usage_is_told(brainq: Brainq, client: Client, wrong: tuple[str, ...]) -> None:
    assert brainq("webhook", *wrong).code == ExitCode.USAGE


def test_doctor_sees_what_is_dead(
    brainq: Brainq, settings: Settings, dead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRAINQ_WEBHOOKS", json.dumps([{"url": URL, "secret": "whsec_" + "A" * 32}]))
    said = brainq("doctor").out
    assert "1 configured, 1 pending deliveries, 1 dead" in said
    assert "brainq webhook retry all" in said
    brainq("webhook", "retry", "all")
    (again,) = check_webhooks(load_settings())
    assert (again.level, again.said) == ("ok", "1 configured, 2 pending deliveries, 0 dead")
    assert list(check_webhooks(settings)) == [], "nothing is said where there are none"
