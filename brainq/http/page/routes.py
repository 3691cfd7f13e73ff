"""The routes of the page. They are open to everybody and tell nothing: what the page shows it asks the API for."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from brainq.http.page.assets import assets, media_type
from brainq.http.problems import Refused

router = APIRouter(include_in_schema=False)

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob:",  # a turn's files, which the page asks for with its token
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
"""What a model or a tool says cannot become a script, a picture or a form of the page, nor be sent elsewhere."""

SAFE = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable"}
EVERY_TIME = {"Cache-Control": "no-cache"}


@router.get("/")
async def shell() -> Response:
    """The page. What it shows stands behind the `#` of its address, which no server sees."""
    return Response(assets().shell, headers=SAFE | EVERY_TIME, media_type="text/html; charset=utf-8")


@router.get("/page/{release}/{name:path}")
async def asset(release: str, name: str) -> Response:
    """A file of the page. Another release's shell, from another gateway, gets ours, and does not keep it."""
    ours = assets()
    content = ours.files.get(name)
    if content is None:
        raise Refused("no-such-route", "the page has no such file; load it again")
    kept = FOR_EVER if release == ours.release else EVERY_TIME
    return Response(content, headers=SAFE | kept, media_type=media_type(name))
