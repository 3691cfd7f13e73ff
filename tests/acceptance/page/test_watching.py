"""A turn is watched from submit to end; reloads, gateways and Redis that go away change nothing of what is seen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from brainq.app.devserver.ports import free_port
from tests.support.brains import diary
from tests.support.brains.obedient import script
from tests.support.browser import CHROMIUM
from tests.support.gateways import GatewayProcess
from tests.support.world import World

pytestmark = [pytest.mark.full, pytest.mark.needs(CHROMIUM, "chromium")]

WORDS = " ".join(f"word-{number}" for number in range(60))


def shown_text(page: Page) -> str:
    """The model's newest text, as a reader sees it."""
    return page.locator(".message.model .prose").last.inner_text()


def test_a_turn_is_watched_from_submit_to_end(page: Page, world: World, session: str) -> None:
    page.goto(f"/#/sessions/{session}")
    page.get_by_label("Your message").fill(
        script(
            [("read", {"name": "a", "gate": f"{session}-read"}), ("write", {"name": "b"})], final=WORDS, words_s=0.05
        )
    )
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Turn", exact=True).click()
    expect(page).to_have_url(re.compile(r"#/turns/[0-9a-z]{26}$"))
    expect(page.locator(".subline .badge")).to_have_text("active")
    expect(page.locator(".strip.next")).to_contain_text(re.compile("[Rr]unning read|read waits"))
    growing = page.locator('[data-bar="c1-0"]')
    expect(growing).to_have_attribute("data-open", "yes")
    facts = page.locator(".tl-facts")
    growing.hover()
    expect(facts).to_contain_text("so far")
    diary.open_gate(f"{session}-read")
    expect(growing).to_have_attribute("data-open", "no")
    expect(page.locator(".message[data-live=yes]")).to_contain_text("word-3")
    assert "word-59" not in shown_text(page), "the text is shown as it streams"
    expect(page.locator(".subline .badge")).to_have_text("completed")
    assert shown_text(page) == WORDS
    rows = page.locator(".tl-name > span")
    assert rows.all_inner_texts() == ["Coordinator", "Reads", "Local writes", "Finalizer"]
    page.locator(".tl-table summary").click()
    table = page.locator(".tl-table tbody tr")
    expect(table.filter(has_text="write")).to_contain_text("completed")
    page.locator("[id='call-c1-1'] summary").click()
    expect(page.get_by_label("Result of c1-1")).to_have_text("write b ok")


def test_a_reload_in_the_middle_shows_the_same_and_doubles_nothing(page: Page, world: World, session: str) -> None:
    handle = world.client.submit(session, script([("read", {"name": "a"})], final=WORDS, words_s=0.05))
    page.goto(f"/#/turns/{handle.turn_id}")
    expect(page.locator(".message[data-live=yes]")).to_contain_text("word-5 ")
    page.reload()
    expect(page.locator(".message[data-live=yes]")).to_contain_text("word-5 ")
    expect(page.locator(".subline .badge")).to_have_text("completed")
    assert shown_text(page) == WORDS
    assert page.locator(".message.model").count() == 1
    page.goto("/#/sessions/" + session)
    expect(page.locator(".message.model")).to_have_text(re.compile(WORDS))
    page.go_back()
    expect(page.locator(".message.model .prose")).to_have_text(WORDS)


def test_an_attempt_that_broke_off_is_replaced(page: Page, world: World, session: str) -> None:
    gate = f"{session}-again"
    handle = world.client.submit(session, script(final=WORDS, words_s=0.05, gate=gate))
    page.goto(f"/#/turns/{handle.turn_id}")
    diary.open_gate(gate)
    expect(page.locator(".message[data-live=yes]")).to_contain_text("word-5 ")
    world.kill_all("coordinator")
    world.launch_dead()
    expect(page.locator(".subline .badge")).to_have_text("completed", timeout=60_000)
    assert shown_text(page) == WORDS
    assert page.locator(".message.model").count() == 1
    page.locator('[data-bar="step 1"]').focus()
    expect(page.locator(".tl-facts")).to_contain_text("attempt 2")


def test_a_gateway_that_starts_anew_is_said_and_gone_on_from(
    page: Page, world: World, session: str, tmp_path: Path
) -> None:
    port = free_port()
    handle = world.client.submit(session, script([("read", {"name": "a", "gate": f"{session}-up"})], final=WORDS))
    with GatewayProcess(tmp_path, world.environment, port=port) as first:
        page.goto(f"{first.url}/#/turns/{handle.turn_id}")
        expect(page.locator(".stream")).to_have_text("live")
        expect(page.locator(".strip.next")).to_contain_text("Running read")
        first.kill()
        trouble = page.locator(".trouble")
        expect(trouble).to_contain_text("The gateway does not answer. Trying again")
        expect(page.locator(".strip.next"), "what was known stays").to_contain_text("read")
    with GatewayProcess(tmp_path, world.environment, port=port):
        expect(page.locator(".stream")).to_have_text("live")
        expect(trouble).to_have_text("")
        diary.open_gate(f"{session}-up")
        expect(page.locator(".subline .badge")).to_have_text("completed")
        assert shown_text(page) == WORDS


def test_a_redis_that_starts_anew_is_said_and_gone_on_from(page: Page, world: World, session: str) -> None:
    handle = world.client.submit(session, script([("read", {"name": "a", "gate": f"{session}-up"})], final=WORDS))
    page.goto(f"/#/turns/{handle.turn_id}")
    expect(page.locator(".strip.next")).to_contain_text("Running read")
    world.redis.kill()
    expect(page.locator(".trouble")).to_contain_text("Redis or SQL does not answer; try again later. Trying again")
    world.redis.again()
    diary.open_gate(f"{session}-up")
    expect(page.locator(".subline .badge")).to_have_text("completed", timeout=60_000)
    expect(page.locator(".trouble")).to_have_text("")
    assert shown_text(page) == WORDS


def test_a_message_names_the_brain_that_answers_it(page: Page, world: World, session: str) -> None:
    page.goto(f"/#/sessions/{session}")
    page.get_by_label("Brain").select_option(label="parrot · scripted")
    page.get_by_label("Your message").fill("who are you?")
    page.keyboard.press("Enter")
    expect(page.locator(".message.model")).to_contain_text("the parrot says so")
    page.get_by_role("link", name="Turn", exact=True).click()
    expect(page.locator(".subline")).to_contain_text("brain parrot")


def test_an_edit_is_shown_as_a_diff(page: Page, world: World, session: str) -> None:
    change = {"path": "a.txt", "before": "one\ntwo\n", "after": "one\n2\n"}
    handle = world.client.submit(session, script([("change", change)]))
    page.goto(f"/#/turns/{handle.turn_id}?call=c1-0")
    diff = page.get_by_label("What c1-0 changes")
    expect(diff.locator(".less")).to_contain_text("two")
    expect(diff.locator(".more")).to_contain_text("2")
    expect(page.get_by_label("What it changed")).to_contain_text("+2")


def test_the_fleet_is_seen(page: Page, world: World) -> None:
    page.goto("/#/fleet")
    row = page.get_by_role("row", name=re.compile("^coordinator"))
    expect(row).to_contain_text("of 16")
    expect(page.get_by_label("Queues", exact=True)).to_contain_text("brainq.tools.destructive")
    expect(page.get_by_label("Redis", exact=True)).to_contain_text("noeviction")
