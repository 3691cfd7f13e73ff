"""The pictures: what is done on the page, and what is looked at."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

from lab.screenshots.desk import STANDING

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking")
MAPLE = "The maple of order A-1042 arrived broken. Can Ida have her money back?"
WIDE = (1280, 820)
PHONE = (390, 780)


def take(url: str, chromium: str, folder: Path) -> None:
    """Take all of them into `folder`: page-turn.png, ..."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        try:
            _take(browser, url, folder)
        finally:
            browser.close()


def _take(browser: Browser, url: str, folder: Path) -> None:
    page = new_page(browser, url, "light", WIDE)
    for session, message in STANDING:
        answer = page.request.post(f"{url}/v1/turns", data={"session_id": session, "user_message": message})
        assert answer.ok, answer.text()
    page.goto("/#/sessions/desk:brandt")
    page.get_by_label("Your message").fill(MAPLE)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Approve", exact=True)).to_be_visible(timeout=30_000)
    shoot(page, folder / "page-chat.png")

    page.goto("/#/turns")
    expect(page.locator(".turn-row").nth(4)).to_be_visible()
    shoot(page, folder / "page-turns.png")

    page.goto("/#/approvals")
    card = page.locator(".approval").first
    card.get_by_role("button", name="Edit arguments").click()
    card.get_by_label("amount").fill("80.0")
    shoot(page, folder / "page-approvals.png", (1280, 560))
    card.get_by_role("button", name="Back").click()
    card.get_by_role("link", name="turn ").click()
    turn = page.url.partition("?")[0]

    dark = new_page(browser, url, "dark", WIDE)
    dark.goto(turn)
    page.locator(".approval").get_by_role("button", name="Approve", exact=True).click()
    expect(dark.locator(".message[data-live=yes]")).to_contain_text("What I looked at", timeout=30_000)
    dark.locator('[data-bar="c2-0"]').hover()
    shoot(dark, folder / "page-turn-live.png", (1280, 1120))

    page = new_page(browser, url, "light", WIDE)
    page.goto(turn)
    expect(page.locator(".subline .badge")).to_have_text("completed", timeout=30_000)
    expect(page.locator(".aside .diff")).to_be_visible()
    page.locator('[data-bar="c2-0"]').hover()
    shoot(page, folder / "page-turn.png", (1280, 1000))

    page.goto("/#/fleet")
    expect(page.locator(".panel table").first).to_be_visible()
    shoot(page, folder / "page-fleet.png", (1280, 620))

    phone = new_page(browser, url, "dark", PHONE)
    phone.goto(turn)
    expect(phone.locator(".tl-grid")).to_be_visible()
    shoot(phone, folder / "page-phone.png")


def new_page(browser: Browser, url: str, scheme: str, size: tuple[int, int]) -> Page:
    dark = "dark" if scheme == "dark" else "light"
    width, height = size
    context = browser.new_context(
        base_url=url, color_scheme=dark, viewport={"width": width, "height": height}, reduced_motion="reduce"
    )
    return context.new_page()


def shoot(page: Page, path: Path, size: tuple[int, int] | None = None) -> None:
    if size is not None:
        page.set_viewport_size({"width": size[0], "height": size[1]})
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_timeout(600)  # what was asked for is drawn, and its colours have settled
    page.screenshot(path=path)
    print(f"{path} {path.stat().st_size // 1024} KB")
