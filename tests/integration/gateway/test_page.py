"""The page's own routes: open to everybody, with a policy, and kept as long as they are good."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from brainq.gateway.page.routes import CONTENT_SECURITY_POLICY, load_assets
from tests.integration.gateway.test_door import token
from tests.support.browser import CHROMIUM, Watched, chromium
from tests.support.gateways import GatewayThread
from tests.support.pump import Pump


def test_the_page_is_open_and_what_it_shows_is_not(gateways: Callable[..., GatewayThread], pump: Pump) -> None:
    token(pump, "anybody", "*")
    gateway = gateways()
    shell = gateway.http.get("/")
    assert (shell.status_code, shell.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert shell.headers["cache-control"] == "no-cache"
    for address in re.findall(r'(?:src|href)="(page/[^"]+)"', shell.text):
        answer = gateway.http.get("/" + address)
        assert answer.status_code == 200, address
        assert answer.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "immutable" in answer.headers["cache-control"]
    assert gateway.http.get("/v1/approvals").status_code == 401


def test_a_file_of_another_release_is_ours_and_not_kept(gateway: GatewayThread) -> None:
    answer = gateway.http.get("/page/0123456789abcdef/main.js")
    assert answer.content == load_assets().files["main.js"]
    assert answer.headers["cache-control"] == "no-cache"


def test_there_is_no_way_out_of_the_folder(gateway: GatewayThread) -> None:
    release = load_assets().release
    for name in ("..%2froutes.py", "%2e%2e/routes.py", "index.html", "nothing.js", "/etc/passwd"):
        answer = gateway.http.get(f"/page/{release}/{name}")
        assert answer.status_code in (401, 404), name
        assert answer.headers["content-type"] == "application/problem+json"


def test_its_code_keeps_the_token_in_one_tab_and_reads_no_text_as_html() -> None:
    sources = {name: text.decode() for name, text in load_assets().files.items() if name.endswith(".js")}
    ours = {name: text for name, text in sources.items() if "vendor/" not in name}
    assert [name for name, text in ours.items() if "sessionStorage" in text] == ["core/token.js"]
    assert [name for name, text in ours.items() if "localStorage" in text] == ["parts/theme.js"]
    for way in ("document.cookie", "indexedDB", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write"):
        assert [name for name, text in ours.items() if way in text] == [], way


@pytest.mark.full
@pytest.mark.needs(CHROMIUM, "chromium")
def test_a_browser_runs_it(gateway: GatewayThread, pump: Pump) -> None:
    """A sample; tests/acceptance/page has the rest."""
    handle = pump.submit("s1", "<b>hello</b>")
    pump.finish(handle)
    with chromium() as browser:
        page = browser.new_page(base_url=gateway.url)
        watched = Watched(page)
        page.goto("/")
        page.get_by_role("link", name="<b>hello</b>").click()
        page.get_by_text("The model answered.").wait_for()
        assert page.locator(".message.model .prose").inner_text() == "Read: <b>hello</b>"
        page.locator(".tl-bar").nth(1).wait_for()
        page.close()
    assert watched.faults == []
