"""Fetching a page: what is refused, what is read, and when it stops."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from examples.vault.page import MAX_BYTES, PageError, check_url, fetch_page

HTML = b"""<html><head><title> A  page </title><style>p{}</style></head><body><h1>A page</h1>
<script>let x = 1</script><p>One &amp;
two</p><ul><li>three</li></ul></body></html>"""


class _Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        kind, body = {
            "/page": ("text/html; charset=utf-8", HTML),
            "/long": ("text/plain", b"x" * (MAX_BYTES + 10)),
            "/image": ("image/png", b"png"),
        }.get(self.path, ("text/plain", b""))
        self.send_response({"/ftp": 302, "/broken": 503, "/gone": 404}.get(self.path, 200))
        if self.path == "/ftp":
            self.send_header("Location", "ftp://127.0.0.1/x")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except ConnectionError:  # the reader hung up at its limit
            pass

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        return None


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://x/y", "http://", "notes.md", "http://a b/", "http://[x"])
def test_only_web_addresses_are_taken(url: str) -> None:
    with pytest.raises(PageError, match="http:// or https://"):
        check_url(url)


def test_a_page_becomes_a_title_and_paragraphs(site: str) -> None:
    page = fetch_page(f"{site}/page", lambda: 5.0)
    assert (page.title, page.text, page.is_cut) == ("A page", "One & two\n\nthree", False)


def test_a_long_page_is_cut(site: str) -> None:
    page = fetch_page(f"{site}/long", lambda: 5.0)
    assert (len(page.text), page.is_cut) == (MAX_BYTES, True)


@pytest.mark.parametrize(
    ("path", "message", "retryable"),
    [
        ("/ftp", "http:// or https://", False),
        ("/image", "only text", False),
        ("/gone", "404", False),
        ("/broken", "503", True),
    ],
)
def test_what_cannot_be_read_says_why(site: str, path: str, message: str, retryable: bool) -> None:
    with pytest.raises(PageError, match=message) as caught:
        fetch_page(site + path, lambda: 5.0)
    assert caught.value.retryable is retryable


def test_a_fetch_ends_when_its_time_is_used_up(site: str) -> None:
    left = iter([5.0, 0.0])
    with pytest.raises(PageError, match="used up"):
        fetch_page(f"{site}/long", lambda: next(left))
