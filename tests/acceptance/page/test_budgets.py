"""A day's cap under eight coordinators whose model bills more than was expected: turns are parked at it, and go on once
it is raised, over HTTP and on the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.support.brains import diary
from tests.support.brains.spending import BILL_USD
from tests.support.browser import CHROMIUM, Watched
from tests.support.gateways import GatewayProcess
from tests.support.wait import wait_until
from tests.support.world import World

pytestmark = [pytest.mark.full, pytest.mark.needs(CHROMIUM, "chromium")]

TURNS = 24
DAY = {"scope": "all", "per": "day"}


@pytest.fixture
def crowd(tmp_path: Path) -> Iterator[World]:
    world = World(
        tmp_path / "world",
        workers={"coordinator": 8},
        threads={"coordinator": 4},
        environment={"BRAINQ_APP": "tests.support.brains.spending:brain", "BRAINQ_BUDGETS": "all day=1"},
    )
    try:
        yield world.start()
    finally:
        world.stop()


def billed() -> float:
    return sum(note["usd"] for note in diary.notes("billed"))


def is_at_rest(http: httpx.Client, cap: float) -> bool:
    """Every turn has ended or is parked for money; and what was billed is not above the cap by more than one call."""
    assert billed() <= cap + BILL_USD + 1e-6
    turns = http.get("/v1/turns", params={"limit": 100}).json()["turns"]
    return len(turns) == TURNS and {turn["state"] for turn in turns} <= {"parked", "completed"}


def test_it_is_held_raised_twice_and_gone_on(crowd: World, browser: Browser, tmp_path: Path) -> None:
    with GatewayProcess(tmp_path, crowd.environment) as gateway, httpx.Client(base_url=gateway.url, timeout=60) as http:
        for number in range(TURNS):
            crowd.client.submit(f"tenant{number % 3}:{number}", "Go.")
        wait_until(lambda: is_at_rest(http, 1), "the day's dollar is spent", timeout_s=120)
        assert billed() > 1 - BILL_USD
        (budget,) = http.get("/v1/budgets").json()["budgets"]
        done = round(billed() / BILL_USD)
        assert (budget["is_spent"], budget["parked"]) == (True, TURNS - done)
        assert budget["noticed_at"] is not None
        assert http.post("/v1/budgets/raise", json={**DAY, "usd": 1}).json() == {"cap_usd": 2}
        wait_until(lambda: billed() > 2 - BILL_USD and is_at_rest(http, 2), "the second one, too", timeout_s=120)
        page = browser.new_context(base_url=gateway.url, viewport={"width": 1280, "height": 900}).new_page()
        watched = Watched(page)
        page.goto("/#/fleet")
        row = page.get_by_role("table", name="Budgets").get_by_role("row").nth(1)
        expect(row).to_contain_text("notice sent")
        page.get_by_label("Raise by, in dollars").fill("3")
        row.get_by_role("button").click()
        wait_until(lambda: round(billed() / BILL_USD) == TURNS and is_at_rest(http, 5), "all go on", timeout_s=120)
        expect(row).not_to_contain_text("spent", timeout=30_000)
        assert watched.faults == []
