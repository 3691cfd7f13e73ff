"""Images and files in bodies."""

from __future__ import annotations

from pydantic import Field

from brainq.contracts.file import MAX_NAME_CHARS
from brainq.http.bodies.base import Body


class FileBody(Body):
    """An image or a file: its bytes as base64 text, or as a `data:` URL. Without a type it is found from the bytes."""

    data: str = Field(min_length=1)
    media_type: str = Field(default="", max_length=200)
    name: str = Field(default="", max_length=MAX_NAME_CHARS)
