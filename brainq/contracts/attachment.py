"""Images and files beside a message's text."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from brainq.contracts.base import Wire

_UNITS = ((1_000_000, "MB"), (1_000, "kB"))


class Attachment(Wire):
    """An image or a file. Its bytes are kept once, in SQL, under their hash; messages carry this in their place.

    sha256       of the bytes, as 64 hexadecimal digits
    media_type   such as `image/png` or `application/pdf`
    size         bytes
    name         what the model and people are told it is called; may be empty
    """

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    media_type: str = Field(pattern=r"^[a-z0-9.+-]+/[A-Za-z0-9.+-]+$", max_length=127)
    size: int = Field(ge=0)
    name: str = Field(default="", max_length=255)

    @property
    def is_image(self) -> bool:
        return self.media_type.startswith("image/")

    @property
    def label(self) -> str:
        """It in words, for people and for models that are not shown it: `plan.png (image/png, 12.3 kB)`."""
        size = next((f"{self.size / unit:.1f} {word}" for unit, word in _UNITS if self.size >= unit), "")
        what = f"{self.media_type}, {size or f'{self.size} bytes'}"
        return (
            f"{self.name} ({what})" if self.name else f"{'an image' if self.is_image else 'a file'} ({what})"
        )


def in_text(text: str, attachments: Sequence[Attachment]) -> str:
    """A message in words, with its files by name: for people, and for models that are asked about a conversation."""
    if not attachments:
        return text
    return f"{text} [with {', '.join(one.label for one in attachments)}]".lstrip()
