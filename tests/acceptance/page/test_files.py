"""Images and files of messages, and what a model thought, in a browser whose user has a token."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from brainq import File
from tests.acceptance.page.conftest import NewPage
from tests.support.blobs import pdf, png
from tests.support.brains import diary
from tests.support.brains.watched import THOUGHT
from tests.support.browser import CHROMIUM
from tests.support.gateways import GatewayProcess
from tests.support.world import World

pytestmark = [pytest.mark.full, pytest.mark.needs(CHROMIUM, "chromium")]

SENT = [
    File(png(), name="plan.png"),
    File(pdf(), name="terms.pdf"),
    File(b"<svg onload=window.hit=1>", name="<svg onload=window.hit=1>.svg", media_type="image/svg+xml"),
]
READER = {"BRAINQ_HTTP_AUTH": "tests.support.callers:authenticate"}


@pytest.fixture
def readers_page(new_page: NewPage, world: World) -> Iterator[Page]:
    """A page of a gateway that asks for tokens, once it has one."""
    with GatewayProcess(world.directory, world.environment | READER) as asked:
        page = new_page(base_url=asked.url)
        page.goto("/#/turns")
        page.get_by_label("Token").fill("reader")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_label("Token")).to_have_count(0)
        yield page


def test_images_and_files_and_what_was_thought_are_shown(readers_page: Page, world: World, session: str) -> None:
    page, gate = readers_page, f"{session}-paint"
    handle = world.client.submit(session, gate, brain="painter", attachments=SENT)
    page.goto(f"/#/turns/{handle.turn_id}")
    said = page.get_by_label("The user")
    expect(said.locator("figcaption")).to_have_text(
        [
            re.compile(r"^plan\.png image/png, \d+ bytes$"),
            re.compile(r"^terms\.pdf application/pdf, \d+ bytes$"),
            re.compile(r"^<svg onload=window\.hit=1>\.svg image/svg\+xml, 25 bytes$"),
        ]
    )
    expect(said.locator("img")).to_have_count(1)
    expect(said.get_by_alt_text("plan.png"), "its bytes are drawn").to_have_js_property("naturalWidth", 1)
    thought = page.locator("details.thought")
    expect(thought, "it thinks aloud").to_have_count(1)
    expect(page.locator("p.thinking")).to_have_text("The model is thinking…")
    diary.open_gate(gate)
    expect(page.locator(".subline .badge")).to_have_text("completed")
    expect(thought).to_have_count(1)
    expect(thought.get_by_text(THOUGHT)).to_be_hidden()
    thought.locator("summary").click()
    expect(thought.get_by_text(THOUGHT)).to_be_visible()
    page.locator("[id='call-c1-0'] summary").click()
    painted = page.locator("[id='call-c1-0']").get_by_alt_text("painted.png")
    painted.scroll_into_view_if_needed()
    expect(painted).to_have_js_property("naturalWidth", 1)
    assert page.evaluate("window.hit") is None

    # Said in another turn of its session, it is one of those before.
    world.done(handle)
    world.client.submit(session, "next", brain="parrot").result(timeout_s=60)
    page.goto(f"/#/sessions/{session}")
    earlier = page.get_by_label("An earlier turn").get_by_alt_text("plan.png")
    earlier.scroll_into_view_if_needed()
    expect(earlier).to_have_js_property("naturalWidth", 1)


def test_an_image_that_is_no_longer_kept_says_so(readers_page: Page, world: World, session: str) -> None:
    handle = world.client.submit(session, "hello", brain="parrot", attachments=SENT[:1])
    handle.result(timeout_s=60)
    readers_page.route(re.compile("/files/"), lambda route: route.fulfill(status=404, json={"detail": "gone"}))
    readers_page.goto(f"/#/turns/{handle.turn_id}")
    expect(readers_page.get_by_alt_text("plan.png: gone")).to_be_visible()
    expect(readers_page.get_by_label("The user").locator("figcaption")).to_contain_text("plan.png")
