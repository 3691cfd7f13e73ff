"""Chromium for tests of the page.

It starts once per file, each test has a fresh context, and its console must stay empty.
"""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager

from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or ""
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--enable-precise-memory-info",
)


@contextmanager
def chromium() -> Generator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """The reports of a page: errors that were not caught, and what its policy refused."""

    def __init__(self, page: Page) -> None:
        self.faults: list[str] = []
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", self._console)

    def _console(self, message: ConsoleMessage) -> None:
        # That an answer was a refusal, or did not come, is no fault: the page tells of it.
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            self.faults.append(message.text)
