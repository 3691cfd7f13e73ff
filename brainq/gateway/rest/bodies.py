"""Base classes of bodies, files in bodies and in answers, and the sizes of pages. Values are taken as sent,
and unknown fields are rejected.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from brainq.contracts.file import MAX_NAME_CHARS, File

# What all bodies are, and what several routes answer.
#
# Bodies are taken as they are: nothing is made a number that was sent as text, and unknown fields are refused.


class Body(BaseModel):
    """What a request sends."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Answer(BaseModel):
    """What a request is answered."""

    model_config = ConfigDict(frozen=True)


class ChangeAnswer(Answer):
    """False: it was so before."""

    changed: bool


class AffectedTurn(Answer):
    """The turn that it made live, or cancelled; null: none."""

    turn_id: str | None


# Images and files in bodies.


class FileBody(Body):
    """An image or a file: its bytes as base64 text, or as a `data:` URL. Without a type it is found from the bytes."""

    data: str = Field(min_length=1)
    media_type: str = Field(default="", max_length=200)
    name: str = Field(default="", max_length=MAX_NAME_CHARS)


# How much a page holds: one answer is made whole, on the loop that every stream waits for.

MAX_PAGE = 1_000

"""Of what is 2 kB each it takes a few milliseconds to write."""

DEFAULT_PAGE = 200

DEFAULT_LIST_PAGE = 50

Limit = Annotated[int, Query(ge=1, le=MAX_PAGE)]


# A file as a browser may have it: what anybody sent must never run on the gateway's own address.

INLINE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})

"""What a browser shows in place; anything else is saved. SVG is not among them: it may hold scripts."""


def file_response(file: File) -> Response:
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
