"""What people do to turns from the page: approve, edit, deny, steer, hold, cancel; and who may not is told so."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.page.conftest import NewPage
from tests.support.brains import diary
from tests.support.brains.obedient import script
from tests.support.browser import CHROMIUM
from tests.support.gateways import GatewayProcess
from tests.support.wait import wait_until
from tests.support.world import World

pytestmark = [pytest.mark.full, pytest.mark.needs(CHROMIUM, "chromium")]


def test_an_approval_is_edited_and_approved(page: Page, world: World, session: str) -> None:
    handle = world.client.submit(session, script([("sign", {"name": "mine"})]))
    page.goto("/#/approvals")
    card = page.locator(".approval", has=page.get_by_role("link", name=handle.turn_id))
    expect(card).to_contain_text("it is signed")
    expect(page.locator("nav .count")).to_contain_text("1")
    card.get_by_role("button", name="Edit arguments").click()
    expect(card.get_by_label("name"), "a field for each argument").to_have_value("mine")
    card.get_by_role("button", name="Edit as JSON").click()
    field = card.get_by_label("Arguments, as a JSON object")
    field.fill('{"name": ')
    expect(card.locator(".wrong")).to_contain_text("It is not valid JSON")
    expect(card.get_by_role("button", name="Approve as edited")).to_be_disabled()
    field.fill('{"nobody": 1}')
    card.get_by_role("button", name="Approve as edited").click()
    expect(card.locator(".wrong"), "the API's words, at the field").to_contain_text("name")
    expect(field).to_have_attribute("aria-invalid", "true")
    field.fill(json.dumps({"name": "ours"}, indent=2))
    expect(card.locator(".diff .less")).to_have_text(re.compile("mine"))
    expect(card.locator(".diff .more")).to_have_text(re.compile("ours"))
    card.get_by_role("button", name="Approve as edited").click()
    expect(card).to_have_count(0)
    assert handle.result(timeout_s=30).ending == "completed"
    assert [note["name"] for note in diary.notes("start", tool="sign", turn=handle.turn_id)] == ["ours"]
    page.goto(f"/#/turns/{handle.turn_id}?call=c1-0")
    expect(page.locator("[id='call-c1-0']")).to_contain_text("with other arguments")
    expect(page.get_by_label("Result of c1-0")).to_contain_text("sign ours ok")


def test_a_call_is_denied_with_a_reason_beside_its_conversation(page: Page, world: World, session: str) -> None:
    handle = world.client.submit(session, script([("sign", {"name": "mine"})], final="$seen"))
    page.goto(f"/#/sessions/{session}")
    card = page.locator(".approval")
    card.get_by_role("button", name="Deny").click()
    card.get_by_label("Reason").fill("not on a Sunday")
    card.get_by_role("button", name="Deny the call").click()
    expect(card).to_have_count(0)
    assert "not on a Sunday" in handle.result(timeout_s=30).text
    assert diary.notes("start", tool="sign", turn=handle.turn_id) == []


def test_what_was_decided_elsewhere_is_told(new_page: NewPage, world: World, session: str) -> None:
    handle = world.client.submit(session, script([("sign", {"name": "mine"})]))
    one, two = new_page(), new_page()
    for page in (one, two):
        page.goto(f"/#/turns/{handle.turn_id}")
        expect(page.get_by_role("button", name="Approve")).to_be_visible()
    two.route("**/approvals*", lambda route: route.abort())  # it hears of nothing
    one.get_by_role("button", name="Approve").click()
    assert handle.result(timeout_s=30).ending == "completed"
    expect(two.locator(".approval")).to_have_count(0)


def test_a_steer_has_its_receipt(page: Page, world: World, session: str) -> None:
    gate = f"{session}-steer"
    handle = world.client.submit(session, script([("read", {"name": "a", "gate": gate})], final="$seen"))
    page.goto(f"/#/turns/{handle.turn_id}")
    page.get_by_label("Message the running turn").fill("The red ones, please.")
    page.keyboard.press("Enter")
    receipt = page.locator(".receipts li")
    expect(receipt).to_contain_text("accepted")
    expect(receipt).to_contain_text("The red ones, please.")
    diary.open_gate(gate)
    expect(receipt).to_contain_text("by step 2")
    assert "The red ones, please." in handle.result(timeout_s=30).text
    expect(page.locator('[data-bar^="input "]')).to_have_attribute("aria-label", re.compile("read by step 2"))
    expect(page.locator(".message.user").nth(1)).to_contain_text("The red ones, please.")


def test_a_turn_is_held_released_and_cancelled(page: Page, world: World, session: str) -> None:
    handle = world.client.submit(session, script([("watch_read", {})], [("write", {"name": "never"})]))
    page.goto(f"/#/turns/{handle.turn_id}")
    page.get_by_role("button", name="Hold").click()
    strip = page.locator(".strip.park")
    expect(strip).to_contain_text("Held: held from the page. Calls that change something wait.")
    assert len(handle.holds()) == 1
    strip.get_by_role("button", name="Release").click()
    expect(strip).to_have_count(0)
    assert handle.holds() == ()
    page.get_by_role("button", name="Cancel…").click()
    page.get_by_role("button", name="Cancel the turn").click()
    expect(page.locator(".subline .badge")).to_have_text("cancelled")
    assert handle.result(timeout_s=30).ending == "cancelled"
    assert diary.notes("start", tool="write", turn=handle.turn_id) == []


def test_a_session_is_paused_queued_dropped_and_resumed(page: Page, world: World, session: str) -> None:
    world.client.submit(session, script([("read", {"name": "a", "gate": f"{session}-go"})]))
    page.goto(f"/#/sessions/{session}")
    page.get_by_label("Message the running turn").fill("and then this")
    page.get_by_role("button", name="Queue as the next turn").click()
    waiting = page.locator(".waiting li")
    expect(waiting).to_contain_text("and then this")
    waiting.get_by_role("button", name="Drop").click()
    expect(waiting).to_have_count(0)
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".head .badge")).to_have_text("paused")
    assert world.client.session(session).is_paused()
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".head .badge")).to_have_count(0)
    diary.open_gate(f"{session}-go")


def test_a_tool_is_stopped_by_name_and_lifted(page: Page, world: World, session: str) -> None:
    page.goto("/#/fleet")
    page.get_by_text("Stop something…").click()
    page.get_by_label("Name").fill("write")
    page.get_by_label("Only of tenant").fill("page")
    page.get_by_label("Reason").fill("it writes to the wrong list")
    page.get_by_role("button", name="Stop it").click()
    row = page.get_by_role("table", name="Stopped by operators").get_by_role("row").nth(1)
    expect(row).to_contain_text("tool write of tenant page")
    handle = world.client.submit(session, script([("write", {"name": "a"})]))
    wait_until(lambda: "tool write" in handle.explain(), "the write waits for the lift")
    row.get_by_role("button").click()
    expect(page.get_by_text("Nothing is stopped.")).to_be_visible()
    assert handle.result(timeout_s=30).ending == "completed"


def test_a_token_is_asked_for_and_may_what_it_may(new_page: NewPage, world: World, session: str) -> None:
    with GatewayProcess(
        world.directory, world.environment | {"BRAINQ_HTTP_AUTH": "tests.support.callers:authenticate"}
    ) as asked:
        handle = world.client.submit(session, script([("read", {"name": "a", "gate": f"{session}-end"})]))
        page = new_page(base_url=asked.url)
        page.goto(f"/#/turns/{handle.turn_id}")
        field = page.get_by_label("Token")
        field.fill("nonsense")
        page.get_by_role("button", name="Sign in").click()
        expect(page.locator("#token-why")).to_contain_text("does not know this token")
        field.fill("reader")
        page.get_by_role("button", name="Sign in").click()
        expect(page.locator(".strip.next")).to_contain_text("read")
        page.get_by_role("button", name="Hold").click()
        expect(page.locator(".turn-title .said"), "the API's own words").to_contain_text("this needs the verb 'steer'")
        assert handle.holds() == ()
        page.goto("/#/turns/nobodys-turn")
        expect(page.locator(".refusal")).to_contain_text("this caller has no object with this id")
        page.reload()
        expect(page.locator(".refusal"), "the token is kept for the tab").to_be_visible()
        assert page.evaluate("localStorage.length") == 0
        diary.open_gate(f"{session}-end")


def test_a_finalizer_step_that_was_given_up_is_run_again(page: Page, world: World, session: str) -> None:
    diary.order("extra.raise", "9")
    handle = world.client.submit(session, script(final="done"))
    wait_until(
        lambda: [step for step in world.wiring.store.steps.of_turn(handle.turn_id) if step.state == "dead"],
        "the step is given up",
        90,
    )
    diary.order("extra.raise", "")
    page.goto(f"/#/turns/{handle.turn_id}")
    page.get_by_role("button", name="Run extra again").click()
    expect(page.locator(".panel .said")).to_contain_text("extra: done")
    expect(page.get_by_role("button", name="Run extra again")).to_have_count(0)
