"""The page's public routes and files. All data on the page comes from the API."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path

from fastapi import APIRouter
from starlette.responses import Response

from brainq.gateway.edge.problems import RequestRejected

FOLDER = Path(__file__).with_name("assets")
SHELL_FILE = "index.html"
MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
router = APIRouter(include_in_schema=False)
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob:",  # a turn's files, which the page fetches with its token
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
"""This policy keeps a model's or tool's output from becoming a script, image or form, and from being sent elsewhere."""
SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
IMMUTABLE = {"Cache-Control": "public, max-age=31536000, immutable"}
REVALIDATE = {"Cache-Control": "no-cache"}


@dataclass(frozen=True, slots=True)
class PageAssets:
    """The page's files. `release` is a hash of all of them, so an address never changes content; `shell` lists them."""

    release: str
    shell: bytes
    files: dict[str, bytes]


@cache
def load_assets() -> PageAssets:
    """Load the files, by their paths in the folder."""
    found = {
        path.relative_to(FOLDER).as_posix(): path.read_bytes()
        for path in sorted(FOLDER.rglob("*"))
        if path.suffix in MEDIA_TYPES
    }
    page = (FOLDER / SHELL_FILE).read_text("utf-8")
    sums = sha256(page.encode())
    for name, content in found.items():
        sums.update(f"\n{name} {sha256(content).hexdigest()}".encode())
    release = sums.hexdigest()[:16]
    return PageAssets(release, _fill_shell(page, release, found).encode(), found)


def media_type(name: str) -> str:
    return f"{MEDIA_TYPES[Path(name).suffix]}; charset=utf-8"


def _fill_shell(page: str, release: str, files: dict[str, bytes]) -> str:
    """Fill in the shell. It names every module, so that a browser fetches all of them at once."""
    at = f"page/{release}"
    styles = "\n".join(
        f'<link rel="stylesheet" href="{escape(f"{at}/{name}")}">' for name in files if name.endswith(".css")
    )
    modules = "\n".join(
        f'<link rel="modulepreload" href="{escape(f"{at}/{name}")}">' for name in files if name.endswith(".js")
    )
    return page.replace("{{at}}", at).replace("{{styles}}", styles).replace("{{modules}}", modules)


@router.get("/")
async def shell() -> Response:
    """Return the page. The fragment of its address, which is not sent, selects what it shows."""
    return Response(load_assets().shell, headers=SECURITY_HEADERS | REVALIDATE, media_type="text/html; charset=utf-8")


@router.get("/page/{release}/{name:path}")
async def asset(release: str, name: str) -> Response:
    """Return a file of the page.

    If the shell came from a gateway of another release, this gateway's file is returned, without caching.
    """
    ours = load_assets()
    content = ours.files.get(name)
    if content is None:
        raise RequestRejected("no-such-route", "the page has no such file; reload the page")
    caching = IMMUTABLE if release == ours.release else REVALIDATE
    return Response(content, headers=SECURITY_HEADERS | caching, media_type=media_type(name))
