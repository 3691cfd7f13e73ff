"""The messages a model sees, with their attachments and reasoning. One shape for every provider; providers
translate it to their wire.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field, JsonValue

from brainq.contracts.base import Wire

_SIZE_UNITS = ((1_000_000, "MB"), (1_000, "kB"))


class Attachment(Wire):
    """An image or a file. Its bytes are kept once, in SQL, under their hash; messages carry this in their place.

    sha256       of the bytes, as 64 hexadecimal digits
    media_type   such as `image/png` or `application/pdf`
    size         bytes
    name         its name for the model and people; may be empty
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
        size = next((f"{self.size / unit:.1f} {word}" for unit, word in _SIZE_UNITS if self.size >= unit), "")
        what = f"{self.media_type}, {size or f'{self.size} bytes'}"
        return f"{self.name} ({what})" if self.name else f"{'an image' if self.is_image else 'a file'} ({what})"


def with_attachment_labels(text: str, attachments: Sequence[Attachment]) -> str:
    """A message in words, with its files by name: for people, and for models that are asked about a conversation."""
    if not attachments:
        return text
    return f"{text} [with {', '.join(one.label for one in attachments)}]".lstrip()


class Reasoning(Wire):
    """One piece of a reply's reasoning, kept with its message and sent back to the service it came from.

    wire     whose API takes `block` back: `anthropic`, `openai-responses`, ...; other wires leave it out. With `:call`
             behind it, `block` has the keys of the call number `before` that brainq does not know
    text     what may be read of it; empty where the service keeps it to itself
    block    the rest of it as it came: signature, encrypted content, or where it stood; it is sent back unchanged
    before   how many of the reply's calls stand before it
    model    who thought it, as it was asked for: after a change of model a service may refuse it
    """

    wire: str
    text: str = ""
    block: dict[str, JsonValue] = {}
    before: int = 0
    model: str = ""


class ToolCall(Wire):
    """One call the model asked for.

    `id` is ours (`c<step>-<index>`), unique in the turn. `arguments` is the parsed object, or the raw text
    when it could not be parsed (the validation gate repairs or denies it).
    """

    id: str
    name: str
    arguments: dict[str, Any] | str
    provider_id: str = ""


class Message(Wire):
    """One entry of a conversation.

    role        what the entry is; `tool` answers the call named by `call_id`
    content     text; for `tool` the text the model reads as the call's result
    calls       for `assistant`: the calls of this reply, in the model's order
    turn, step  where it came from; empty and 0 for what a preparer adds
    attachments images and files, for `user` and `tool`
    reasoning   for `assistant`: what the model thought, in its order
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    name: str = ""
    is_error: bool = False
    turn: str = ""
    step: int = 0
    extra: dict[str, JsonValue] | None = None
    attachments: tuple[Attachment, ...] = ()
    reasoning: tuple[Reasoning, ...] = ()

    @property
    def note_kind(self) -> str:
        """Which note of the runtime this is: `summary`, `reflection`, ...; "" for what people and models wrote."""
        return "" if self.extra is None else str(self.extra.get("note") or "")
