"""What users, models and tools say is shown, and never run."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.support.brains.obedient import script
from tests.support.browser import CHROMIUM
from tests.support.world import World

pytestmark = [pytest.mark.full, pytest.mark.needs(CHROMIUM, "chromium")]

PROBES = (
    '<img src=x onerror="window.hit=1">',
    "<script>window.hit=1</script>",
    '"><svg onload=window.hit=1>',
    "[click](javascript:window.hit=1)",
    "</pre></div><iframe srcdoc='<script>parent.hit=1</script>'>",
    "{{constructor.constructor('window.hit=1')()}}",
)
ALL = " ".join(PROBES)
ELEMENTS = "#app :is(img, script, svg, iframe, object, embed, form[action], [href^='javascript'], [onload], [onerror])"


def nothing_ran(page: Page) -> None:
    assert page.evaluate("window.hit") is None
    assert page.locator(ELEMENTS).count() == 0


def test_what_is_said_in_a_turn_stays_text(page: Page, world: World, session: str) -> None:
    steps: list[list[Any]] = [
        [("echo", {"said": ALL}), ("refuse", {"said": ALL}), (PROBES[0], {PROBES[1]: PROBES[2]}), ("read", ALL)],
        [("change", {"path": PROBES[0], "before": PROBES[1], "after": ALL})],
        [("sign", {"name": ALL})],
    ]
    handle = world.client.submit(session, script(*steps, final=ALL, words_s=0.02))
    page.goto("/#/approvals")
    expect(page.locator(".approval")).to_contain_text("onerror")
    page.get_by_role("button", name="Edit arguments").click()
    nothing_ran(page)
    page.goto(f"/#/turns/{handle.turn_id}?call=c1-0")
    expect(page.locator(".call summary")).to_have_count(6)
    for summary in page.locator(".call summary").all():
        if summary.locator("xpath=..").get_attribute("open") is None:
            summary.click()
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.locator(".subline .badge")).to_have_text("completed")
    for probe in PROBES:
        expect(page.get_by_label("Result of c1-0")).to_contain_text(probe)
        expect(page.get_by_label("Result of c1-1")).to_contain_text(probe)
    expect(page.locator(".message.model").last).to_contain_text(PROBES[0])
    expect(page.locator(".diff").first).to_contain_text("onerror")
    expect(page.locator(".call .tool", has_text="<img src=x")).to_have_count(1)
    for bar in page.locator(".tl-bar").all():
        bar.focus()
    page.locator(".tl-table summary").click()
    nothing_ran(page)
    page.goto("/#/turns")
    expect(page.locator(".turn-row").nth(1)).to_be_visible()
    nothing_ran(page)


def test_a_message_of_a_user_and_an_error_of_a_turn_stay_text(page: Page, world: World, session: str) -> None:
    page.goto(f"/#/sessions/{session}")
    page.get_by_label("Your message").fill(ALL)
    page.keyboard.press("Enter")
    expect(page.locator(".message.model")).to_contain_text("heard:")
    for probe in PROBES:
        expect(page.locator(".message.user")).to_contain_text(probe)
    nothing_ran(page)


@pytest.mark.parametrize("kind", ["turns", "sessions", "approvals", "nothing"])
def test_an_address_stays_text(page: Page, kind: str) -> None:
    query = f"state={quote(PROBES[1])}&text={quote(PROBES[2])}&call={quote(PROBES[0])}"
    page.goto(f"/#/{kind}/{quote(PROBES[0], safe='')}?{query}")
    expect(page.locator("h1, .refusal").first).to_be_visible()
    nothing_ran(page)
