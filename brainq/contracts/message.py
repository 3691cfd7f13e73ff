"""The messages that a model reads, with their attachments and reasoning. All providers use this one shape, and
translate it to their wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field, JsonValue

from brainq.contracts.base import Wire

_SIZE_UNITS = ((1_000_000, "MB"), (1_000, "kB"))


class Attachment(Wire):
    """A reference to an image or a file. Its bytes are kept once, in SQL, under their hash.

    sha256: the SHA-256 of the bytes, as 64 hexadecimal digits.
    media_type: such as `image/png` or `application/pdf`.
    size: its size in bytes.
    name: its name for the model and people. May be empty.
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
        """A description of the file for people, and for models that cannot see it: `plan.png (image/png, 12.3 kB)`."""
        size = next((f"{self.size / unit:.1f} {word}" for unit, word in _SIZE_UNITS if self.size >= unit), "")
        what = f"{self.media_type}, {size or f'{self.size} bytes'}"
        return f"{self.name} ({what})" if self.name else f"{'an image' if self.is_image else 'a file'} ({what})"


def with_attachment_labels(text: str, attachments: Sequence[Attachment]) -> str:
    """Return a message's text followed by the names of its files, for people and for models that review a
    conversation."""
    if not attachments:
        return text
    return f"{text} [with {', '.join(one.label for one in attachments)}]".lstrip()


class Reasoning(Wire):
    """One piece of a reply's reasoning, kept with its message and sent back to its service.

    wire: the API that accepts `block`: `anthropic`, `openai-responses`, ... Other wires omit it. With the suffix
        `:call`, `block` has the unknown keys of call number `before`.
    text: the readable part. Empty if the service does not show it.
    block: the rest in its original form: signature, encrypted content, or its position. It is sent back unchanged.
    before: how many of the reply's calls come before it.
    model: the model that produced it, by the requested name. After a change of model a service may refuse it.
    """

    wire: str
    text: str = ""
    block: dict[str, JsonValue] = {}
    before: int = 0
    model: str = ""


class ToolCall(Wire):
    """One call that the model made.

    `id` is brainq's (`c<step>-<index>`), unique in the turn. `arguments` is the parsed object, or the raw text if it
    could not be parsed (the validation gate repairs or denies it).
    """

    id: str
    name: str
    arguments: dict[str, Any] | str
    provider_id: str = ""


class Message(Wire):
    """One entry of a conversation.

    role: the kind of entry. `tool` answers the call `call_id`.
    content: the text. For `tool` it is the result that the model reads.
    calls: for `assistant`, the calls of this reply in the model's order.
    turn, step: where the message came from. Empty and 0 for what a preparer adds.
    attachments: images and files, for `user` and `tool`.
    reasoning: for `assistant`, the model's reasoning in order.
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
        """The kind of a note of the runtime, such as `summary` or `reflection`, or "" for the words of people and
        models."""
        return "" if self.extra is None else str(self.extra.get("note") or "")
