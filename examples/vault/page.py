"""A web page as plain text: fetched with a time limit and a size limit, http and https only."""

from __future__ import annotations

import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from email.message import Message
from html.parser import HTMLParser
from http.client import HTTPException, HTTPResponse
from typing import IO

MAX_BYTES = 500_000
_CHUNK = 16_384
_SKIPPED = frozenset({"script", "style", "nav", "footer", "template", "noscript"})
_BLOCKS = frozenset({"p", "div", "br", "li", "ul", "ol", "h1", "h2", "h3", "h4", "section", "article", "tr", "pre"})


class PageError(Exception):
    """The page could not be fetched; `retryable` when asking again may help."""

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable


@dataclass(frozen=True, slots=True)
class Page:
    """`is_cut`: it was longer than MAX_BYTES, and the rest was not read."""

    url: str
    title: str
    text: str
    is_cut: bool


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A text is sent to the address that was given, and nowhere else."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        return None


class _SameKind(urllib.request.HTTPRedirectHandler):
    """Follows redirects to web pages only; urllib itself would also go to ftp."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        try:
            check_url(newurl)
        except PageError as error:
            raise urllib.error.HTTPError(
                req.full_url, code, f"and sends to a place where {error}", headers, fp
            ) from error
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # pyright: ignore[reportArgumentType]


def check_url(url: str) -> str:
    """Raises PageError unless it is an http or https address with a host."""
    try:
        parts = urllib.parse.urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        good = False
    if not good or not url.isprintable() or " " in url:
        raise PageError(f"{url[:200]!r} cannot be fetched; use an http:// or https:// address")
    return url


def fetch_page(url: str, remaining_s: Callable[[], float]) -> Page:
    """Fetch and read one page. `remaining_s` is asked again and again; at 0 the fetch ends.

    Raises PageError.
    """
    check_url(url)
    opener = urllib.request.build_opener(_SameKind())
    request = urllib.request.Request(url, headers={"User-Agent": "brainq-vault-example"})
    try:
        with opener.open(request, timeout=max(0.1, remaining_s())) as response:
            kind = response.headers.get_content_type()
            if not kind.startswith("text/"):
                raise PageError(f"{url} is {kind}; only text can be read")
            charset = response.headers.get_content_charset("utf-8")
            body = _read(response, remaining_s)
    except urllib.error.HTTPError as error:
        error.close()
        raise PageError(f"{url} answered {error.code} {error.reason}", retryable=error.code >= 500) from error
    except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
        raise PageError(f"{url} cannot be reached: {getattr(error, 'reason', error)}", retryable=True) from error
    try:
        text = body[:MAX_BYTES].decode(charset, "replace")
    except LookupError:
        text = body[:MAX_BYTES].decode("utf-8", "replace")
    title, text = _plain(text) if kind == "text/html" else ("", text.strip())
    return Page(url, title or urllib.parse.urlsplit(url).path.rsplit("/", 1)[-1] or url, text, len(body) > MAX_BYTES)


def post_text(url: str, text: str, remaining_s: Callable[[], float]) -> int:
    """Send a text to an address, once; the status of its answer.

    Raises PageError, which does not say whether the text arrived.
    """
    check_url(url)
    headers = {"User-Agent": "brainq-vault-example", "Content-Type": "text/markdown; charset=utf-8"}
    request = urllib.request.Request(url, data=text.encode(), headers=headers, method="POST")
    try:
        with urllib.request.build_opener(_NoRedirect()).open(request, timeout=max(0.1, remaining_s())) as response:
            return response.status
    except urllib.error.HTTPError as error:
        error.close()
        raise PageError(f"{url} answered {error.code} {error.reason}") from error
    except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
        raise PageError(f"{url} cannot be reached: {getattr(error, 'reason', error)}") from error


def _read(response: HTTPResponse, remaining_s: Callable[[], float]) -> bytes:
    body = b""
    # read1 returns what has come; read would wait for a full chunk from a server that drips.
    while len(body) <= MAX_BYTES and (chunk := response.read1(_CHUNK)):
        body += chunk
        if remaining_s() <= 0:
            raise TimeoutError("the time for this page is used up")
    return body


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self.parts: list[str] = []
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SKIPPED or tag == "title":
            self._inside.append(tag)
        if tag in _BLOCKS:
            self.parts.append("\n\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._inside:
            self._inside.remove(tag)
        if tag in _BLOCKS:
            self.parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        if "title" in self._inside:
            self.title += data
        elif not self._inside:
            self.parts.append(data)


def _plain(html: str) -> tuple[str, str]:
    """(title, paragraphs with an empty line between them); a heading that repeats the title is left out."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    paragraphs = (" ".join(part.split()) for part in re.split(r"\n\s*\n", "".join(reader.parts)))
    title = " ".join(reader.title.split())
    kept = [part for part in paragraphs if part]
    return title, "\n\n".join(kept[1:] if kept[:1] == [title] else kept)
