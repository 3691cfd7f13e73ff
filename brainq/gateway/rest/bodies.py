"""Base classes of bodies, files in bodies and in answers, and the sizes of pages.

Values are read as they were sent: a text is not a number, and unknown fields are rejected.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from brainq.contracts.file import MAX_NAME_CHARS, File


class Body(BaseModel):
    """The body of a request."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Answer(BaseModel):
    """The body of a response."""

    model_config = ConfigDict(frozen=True)


class ChangeAnswer(Answer):
    """`changed` is false where nothing had to change."""

    changed: bool


class AffectedTurn(Answer):
    """The turn that became live or was cancelled; null: none."""

    turn_id: str | None


class FileBody(Body):
    """An image or a file: its bytes as base64, or as a `data:` URL. A missing `media_type` is detected."""

    data: str = Field(min_length=1)
    media_type: str = Field(default="", max_length=200)
    name: str = Field(default="", max_length=MAX_NAME_CHARS)


MAX_PAGE = 1_000
"""A page is encoded as a whole, on the event loop: 1,000 items of 2 kB take a few milliseconds."""
DEFAULT_PAGE = 200
DEFAULT_LIST_PAGE = 50
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE)]
INLINE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Types that a browser shows in place; others are saved. SVG is left out, for it may hold scripts."""


def file_response(file: File) -> Response:
    """The file for a browser, in a sandbox: no file may run scripts on the gateway's origin."""
    kind = "inline" if file.media_type in INLINE_TYPES else "attachment"
    name = quote(file.name or file.attachment.sha256[:12], safe="")
    headers = {
        "Content-Disposition": f"{kind}; filename*=UTF-8''{name}",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox; default-src 'none'",
        # The bytes of a hash never change; whether the turn still has them may.
        "Cache-Control": "private, max-age=300",
    }
    return Response(file.data, headers=headers, media_type=file.media_type)
