"""Everybody can use it: axe finds nothing serious on any view in either scheme, and a keyboard is enough."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, Route, expect

from tests.acceptance.page.conftest import NewPage
from tests.support.brains import diary
from tests.support.brains.obedient import script
from tests.support.browser import CHROMIUM
from tests.support.world import World

pytestmark = [pytest.mark.full, pytest.mark.needs(CHROMIUM, "chromium")]

RULES: Any = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
}
MINOR = ("minor", "moderate")


def serious(page: Page) -> list[str]:
    """What axe finds that keeps somebody from using the page, with where."""
    found = Axe().run(page, options=RULES).response["violations"]
    return [
        f"{one['id']}: {one['help']}: {[node['target'] for node in one['nodes']][:4]}"
        for one in found
        if one["impact"] not in MINOR
    ]


def doubt_writes(route: Route) -> None:
    """Answer as if a write of each turn may or may not have happened."""
    found = json.loads(route.fetch().text())
    for call in found.get("calls", ()):
        call["status"] = "unknown" if call["effect"] != "read_only" else call["status"]
    for turn in found.get("turns", ()):
        turn["unknown_calls"] = 1
    for session in found.get("sessions", ()):
        session["last_turn"]["unknown_calls"] = 1
    route.fulfill(json=found)


OVERFLOWING = """() => [...document.querySelectorAll(".c-state, .badge")]
    .filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent)"""


@pytest.mark.parametrize("width", [1440, 1024, 380])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_unknown_write_is_seen_whole_wherever_its_turn_is_shown(
    new_page: NewPage, world: World, session: str, scheme: str, width: int
) -> None:
    steps = [("change", {"path": "a.txt", "before": "a\n", "after": "b\n"})]
    turn = world.client.submit(session, script(steps))
    assert turn.result(timeout_s=30).ending == "completed"
    page = new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
    page.route(re.compile(r"/v1/(turns|sessions|turns/[^/]+/calls)\?"), doubt_writes)
    for at, where in (
        ("turns", ".turn-row .badge"),
        ("sessions", ".session-row .badge"),
        (f"turns/{turn.turn_id}", ".strip.unknown"),
    ):
        page.goto(f"/#/{at}")
        expect(page.locator(where, has_text=re.compile("unknown.write|may or may not")).first).to_be_in_viewport()
        assert page.evaluate(OVERFLOWING) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert serious(page) == [], f"{at} in {scheme} at {width}"


def test_axe_finds_nothing_serious_while_answers_are_on_their_way(new_page: NewPage) -> None:
    page = new_page()
    page.route("**/v1/**", lambda route: None)
    page.goto("/#/approvals?state=void")
    expect(page.locator(".loading").first).to_be_visible()
    assert serious(page) == []


@pytest.mark.parametrize("width", [1280, 380])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_any_view(
    new_page: NewPage, world: World, session: str, scheme: str, width: int
) -> None:
    gate = f"{session}-axe"
    steps = [("read", {"name": "a"}), ("change", {"path": "a.txt", "before": "a\n", "after": "b\n"})]
    ended = world.client.submit(f"{session}:ended", script(steps, final="# So\n\n- **it** is `done`\n\n```\nx\n```"))
    assert ended.result(timeout_s=30).ending == "completed"
    failed = world.client.submit(f"{session}:failed", script(fail="server"))
    assert failed.result(timeout_s=30).ending == "failed"
    parked = world.client.submit(f"{session}:parked", script([("read", {"name": "a"})], [("sign", {"name": "mine"})]))
    live = world.client.submit(f"{session}:live", script([("read", {"name": "a", "gate": gate})]))
    live.hold("look at it")
    page = new_page(color_scheme=scheme, viewport={"width": width, "height": 900})

    def look(at: str, waits_for: str) -> None:
        page.goto("about:blank")
        page.goto(f"/#/{at}")
        expect(page.locator(waits_for).first).to_be_visible()
        assert serious(page) == [], f"{at} in {scheme} at {width}"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{at} is wider than {width}"

    try:
        look(f"turns/{ended.turn_id}?call=c1-1", ".diff")
        page.locator(".tl-table summary").click()
        assert serious(page) == []
        look(f"turns/{failed.turn_id}", ".strip .machine")
        look(f"turns/{parked.turn_id}", ".approval")
        look(f"turns/{live.turn_id}", ".strip.park")
        look("turns/nobodys-turn", ".refusal")
        look("turns", ".turn-row[data-state]")
        look("turns?text=nobody", ".empty")
        look("sessions", ".session-row:not(.head-row)")
        look(f"sessions/{session}:parked", ".approval")
        look(f"sessions/{session}:new", "#say")
        look("approvals", ".approval")
        page.get_by_role("button", name="Edit arguments").first.click()
        assert serious(page) == []
        page.get_by_role("button", name="Edit as JSON").first.click()
        page.get_by_label("Arguments, as a JSON object").fill("{")
        assert serious(page) == []
        look("approvals?state=void", "h1")
        look("fleet", ".panel table")
        look("nowhere", "h1")
    finally:
        diary.open_gate(gate)
        parked.cancel()


def focused(page: Page) -> str:
    """What has the focus, as its text or label."""
    return page.evaluate(
        "(({ activeElement: at }) => (at?.ariaLabel || at?.innerText || at?.id || '').trim())(document)"
    )


def tab_to(page: Page, what: str, key: str = "Tab") -> None:
    """Go on with Tab until `what` has the focus, and see that it shows it."""
    for _ in range(60):
        page.keyboard.press(key)
        if re.search(what, focused(page)):
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none", f"{what} does not show that it has the focus"
            return
    raise AssertionError(f"Tab does not reach {what}; it is at {focused(page)!r}")


def test_a_keyboard_is_enough(page: Page, world: World, session: str) -> None:
    asked = world.client.submit(session, script([("read", {"name": "a"})], [("sign", {"name": "mine"})]))
    page.goto("/#/turns")
    expect(page.locator(".turn-row").nth(1)).to_be_visible()
    page.keyboard.press("Tab")
    assert focused(page) == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.goto(f"/#/turns/{asked.turn_id}")
    expect(page.get_by_role("button", name="Approve", exact=True)).to_be_visible()
    tab_to(page, "^step 1")
    page.keyboard.press("ArrowDown")
    assert focused(page).startswith("read, ")
    expect(page.locator(".tl-facts")).to_contain_text("c1-0")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowRight")
    assert focused(page).startswith("step 2")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert focused(page).startswith("sign, ")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("call=c2-0"))
    expect(page.get_by_label("Arguments of c2-0")).to_be_visible()
    tab_to(page, "^Approve$")
    page.keyboard.press("Enter")
    expect(page.locator(".subline .badge")).to_have_text("completed")
    assert asked.result(timeout_s=30).ending == "completed"
    tab_to(page, "^Go on in its session$")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Your message")).to_be_focused()
    page.keyboard.type("by keyboard alone")
    page.keyboard.press("Enter")
    expect(page.locator(".message.model").last).to_contain_text("heard: by keyboard alone")
