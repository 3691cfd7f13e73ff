"""The states that a designer looks at: each is made by a real turn, then seen as a person would see it."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

from lab.screenshots.taking import FLAGS, MAPLE, PHONE, WIDE, new_page, shoot

LONG_WAIT_MS = 60_000


def take_states(url: str, chromium: str, folder: Path) -> None:
    """Take all of them into `folder`: hover.png, phone-approval.png, ..."""
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        try:
            _take(browser, url, folder)
        finally:
            browser.close()


def _take(browser: Browser, url: str, folder: Path) -> None:
    page = new_page(browser, url, "light", WIDE)
    waits = _say(page, url, "desk:wait", "Where is the witch hazel of order A-1043?")
    children = _say(page, url, "desk:growers", "Ask the growers for maples of 60 cm")
    failed = _say(page, url, "desk:old", "Ask the old model what it thinks of peat")
    table = _say(page, url, "desk:table", "Compare the maples we have")
    many = _say(page, url, "desk:beds", "Count every bed")
    _say(page, url, "desk:brandt", MAPLE)
    _say(page, url, "desk:label", "Print a label for order A-9999")
    page.goto("/#/approvals")
    expect(page.locator(".approval")).to_have_count(1, timeout=60_000)
    page.locator(".approval").get_by_role("button", name="Approve", exact=True).hover()
    shoot(page, folder / "hover-approve.png", (1280, 620))
    page.get_by_role("button", name="Edit arguments").click()
    shoot(page, folder / "edit-approval.png", (1280, 760))
    page.goto("/#/turns")
    page.locator(".head .button.primary").hover()
    shoot(page, folder / "hover-new-chat.png", (1280, 620))
    for name, at in (("parked", waits), ("failed", failed), ("table", table), ("many-calls", many)):
        _shoot_turn(page, at, folder / f"{name}.png")
    _shoot_turn(page, children, folder / "children.png")
    shoot(page, folder / "icons-1024.png", (1024, 720))
    for scheme in ("light", "dark"):
        phone = new_page(browser, url, scheme, PHONE)
        phone.goto("/#/approvals")
        expect(phone.locator(".approval")).to_have_count(1)
        shoot(phone, folder / f"phone-approval-{scheme}.png")
        phone.goto("/#/turns")
        expect(phone.locator(".turn-row").nth(4)).to_be_visible()
        shoot(phone, folder / f"phone-turns-{scheme}.png")
    page.goto("/#/fleet")
    expect(page.locator(".panel table").first).to_be_visible()
    shoot(page, folder / "fleet.png", (1280, 820))
    page.wait_for_timeout(LONG_WAIT_MS)
    _shoot_turn(page, waits, folder / "long-wait.png")
    page.request.post(f"{url}/v1/turns/{waits}/cancel", data={})
    expect(page.locator(".subline .badge")).to_have_text("cancelled", timeout=30_000)
    shoot(page, folder / "long-wait-ended.png", (1280, 900))


def _say(page: Page, url: str, session: str, message: str) -> str:
    answer = page.request.post(f"{url}/v1/turns", data={"session_id": session, "user_message": message})
    assert answer.ok, answer.text()
    return answer.json()["turn_id"]


def _shoot_turn(page: Page, turn_id: str, path: Path) -> None:
    page.goto(f"/#/turns/{turn_id}")
    expect(page.locator(".tl-grid")).to_be_visible(timeout=30_000)
    page.wait_for_timeout(1_500)
    shoot(page, path, (1280, 900))
