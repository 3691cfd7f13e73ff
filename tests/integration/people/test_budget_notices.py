"""People are told of a budget that is nearly spent: by webhooks and in lists, once for each window and amount."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from brainq.adapters.sql.prune import prune
from brainq.adapters.sql.repositories.budgets import Budgets
from brainq.adapters.sql.repositories.deliveries import BudgetNotices
from brainq.adapters.sql.store import Store
from brainq.contracts.budgets import Budget, MoneyRefusal
from brainq.contracts.webhook import parse_webhooks
from tests.integration.people.test_budgets import brain, price
from tests.integration.webhooks.test_turns import send_all, told
from tests.support.pump import Pump, sqlite_url
from tests.support.receiver import Receiver

Pumps = Callable[..., Pump]
DAY = Budget(scope="all", per="day", usd=10)
SOME_TIME_MS = 1_795_000_000_000


@pytest.fixture(autouse=True)
def priced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brainq.app.wiring.machines.cost_usd", price)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(sqlite_url(tmp_path), migrate=False) as opened:
        yield opened


def wants(usd: float, *, is_new: bool = False) -> MoneyRefusal:
    return MoneyRefusal("short", "all/day", SOME_TIME_MS, usd, usd, 0, is_new)


def run(pump: Pump, *sessions: str) -> None:
    for session_id in sessions:
        pump.submit(session_id, "hello")
        pump.drain()


def test_a_webhook_and_every_list_have_it_and_a_raise_begins_anew(pumps: Pumps, receiver: Receiver) -> None:
    setting = receiver.setting(events=["budget.nearly_spent"])
    pump = pumps(brain(), budgets="tenant acme: day=1", webhooks=setting)
    run(pump, "acme:1", "acme:2", "acme:3")
    (state,) = pump.client.budgets.list()
    assert (told(pump), state.noticed_at, state.used_share) == ([], None, pytest.approx(0.6))
    run(pump, "acme:4", "acme:5")
    send_all(pump)
    (got,) = receiver.received
    assert got.signed
    assert got.content["type"] == "budget.nearly_spent"
    about = got.content["data"]
    assert (about["scope"], about["per"], about["cap_usd"]) == ("tenant acme:", "day", 1.0)
    assert about["begins_at"] == f"{datetime.now(UTC):%Y-%m-%d}T00:00:00Z"
    assert 0.8 <= about["granted_usd"] <= 1
    (state,) = pump.client.budgets.list()
    assert state.noticed_at is not None
    pump.client.budgets.raise_by("tenant acme:", "day", 1.0, by="ann")
    assert pump.client.budgets.list()[0].noticed_at is None, "that was of less"
    run(pump, *(f"acme:{number}" for number in range(6, 12)))
    assert [row.event for row in told(pump)] == ["budget.nearly_spent"] * 2
    assert pump.client.budgets.list()[0].noticed_at is not None


def test_a_call_that_does_not_fit_before_four_fifths_is_told_of_too(pumps: Pumps, receiver: Receiver) -> None:
    pump = pumps(brain(), budgets="all day=0.3", webhooks=receiver.setting(events=["budget.nearly_spent"]))
    run(pump, "s1", "s2", "s3")
    assert len(told(pump)) == 1


def test_a_webhook_of_one_tenant_hears_of_its_own_budgets_alone(store: Store, receiver: Receiver) -> None:
    webhooks = parse_webhooks(receiver.setting(sessions=["acme:"]))
    rows = Budgets(store.database, BudgetNotices(store.deliveries, webhooks))
    for scope in ("all", "brain b", "tenant beta:", "tenant :", "tenant acme:", "user acme:ann:"):
        rows.grant(scope, DAY, wants(9.0, is_new=True))
    found = [(row.session_id, row.turn_id) for row in store.deliveries.list()]
    assert found == [("acme:ann:", ""), ("acme:", "")]
    assert prune(store, -10)["deliveries"] == 0, "they are on their way"
    for row in store.deliveries.list():
        store.deliveries.done(int(row.row))
    assert prune(store, -10)["deliveries"] == 2


@pytest.mark.parametrize("workers", [3, pytest.param(16, marks=pytest.mark.full)])
def test_of_workers_that_pass_it_at_once_one_tells(store: Store, receiver: Receiver, workers: int) -> None:
    webhooks, together = parse_webhooks(receiver.setting()), threading.Barrier(workers)
    Budgets(store.database).grant("all", DAY, wants(1.0, is_new=True))

    def grant(worker: int) -> Any:
        rows = Budgets(store.database, BudgetNotices(store.deliveries, webhooks))
        together.wait()
        return [rows.grant("all", DAY, wants(8.0 + worker / 100)) for _ in range(2)]

    with ThreadPoolExecutor(workers) as pool:
        granted = [one for each in pool.map(grant, range(workers)) for one in each]
    assert sum(one.has_noticed for one in granted) == 1
    assert len(store.deliveries.list()) == 1
