"""Images and files of messages, as blocks of the models' services, or as words if a service does not support them.

    kind       formats                      Anthropic            chat completions
    image      PNG, JPEG, GIF, WebP         image                image_url, as a data: URL
    document   PDF                          document             file, as a data: URL
    text       text/*, JSON, XML, YAML      text                 text
    other      anything else                in words             in words

The Responses API supports the same kinds as chat completions, as input_image and input_file, and also in the output of
a call.

Chat completions accept no images in a tool's message. `move_behind_results` puts them into a user's message after the
results, as OpenAI's guide on function calling recommends.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from brainq.adapters.models.error_body import error_detail
from brainq.contracts.message import Attachment, Message
from brainq.contracts.model import ModelRequest
from brainq.runtime.text.estimate import is_text
from brainq.runtime.text.shorten import shortened
from brainq.runtime.text.surrogates import clean

AttachmentKind = Literal["image", "document", "text", "other"]
SHOWABLE_KINDS: tuple[AttachmentKind, ...] = ("image", "document")
IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
MAX_TEXT_CHARS = 256_000  # the same as for the result of a tool
_REFUSALS: Mapping[AttachmentKind, re.Pattern[str]] = {
    "image": re.compile(
        r"image input is not supported|images? (is|are) not supported|does ?n.t support image|does not support image"
        r"|support image input|at most 0 image|not a multimodal model|required for image input|mmproj"
        r"|image_url is only supported by certain models|unknown variant .?image|unknown part type: image"
        r"|content must be a string|unsupported content\[\]\.type"
    ),
    "document": re.compile(
        r"(file|pdf|document)s?( inputs?| content)? (is|are) not supported|does not support (file|pdf|document)"
        r"|support (file|pdf) input|unknown variant .?(file|document)|unknown part type: file"
        r"|content must be a string|unsupported content\[\]\.type|invalid .{0,40}'?file'?"
    ),
}
UNREADABLE_FILES = "files"
"""The name of the files in a request, which is sent once more without them if the service cannot read one. Services do
not say which one."""
_UNREADABLE = re.compile(
    r"(could not|cannot|unable to|failed to) (process|read|load|decode|parse|open|identify) (the |this |input )?"
    r"(image|pdf|document|file)"
    r"|(image|pdf|document|file)s? .{0,60}(exceeds?|too (large|big|many)|corrupt|password|not valid|is invalid)"
    r"|(unsupported|invalid) (image|pdf|document|base64)|maximum of \d+ pdf pages|image_parse_error"
    r"|invalid_image"
)


def attachment_kind(attachment: Attachment) -> AttachmentKind:
    if attachment.media_type in IMAGES:
        return "image"
    if attachment.media_type == "application/pdf":
        return "document"
    return "text" if is_text(attachment.media_type) else "other"


def refused_attachment_kind(request: ModelRequest, status: int, body: Any) -> AttachmentKind | None:
    """Return the kind of attachment that the model does not support, as this answer says, or None if it is about
    something else."""
    if status not in (400, 404, 415, 422, 500, 501):
        return None
    sent = {attachment_kind(one) for message in request.messages for one in message.attachments}
    if not sent:
        return None
    text = error_detail(body).message.lower()
    return next((kind for kind, pattern in _REFUSALS.items() if kind in sent and pattern.search(text)), None)


def is_unreadable(request: ModelRequest, status: int, body: Any) -> bool:
    """Return whether the service could not read an image or a document of the request, as this answer says."""
    sent = any(_needs_user_message(one) for message in request.messages for one in message.attachments)
    return sent and status in (400, 413, 422) and bool(_UNREADABLE.search(error_detail(body).text))


def move_behind_results(messages: Iterable[Message]) -> list[Message]:
    """Return the conversation with the files that a tool's message cannot hold in a user's message after the
    results."""
    made: list[Message] = []
    waiting: list[Message] = []
    for message in messages:
        if waiting and message.role != "tool":
            made.append(_user_messages(waiting))
            waiting = []
        made.append(message)
        if message.role == "tool" and any(_needs_user_message(one) for one in message.attachments):
            waiting.append(message)
    return [*made, _user_messages(waiting)] if waiting else made


def _needs_user_message(attachment: Attachment) -> bool:
    return attachment_kind(attachment) in SHOWABLE_KINDS


def _user_messages(results: Sequence[Message]) -> Message:
    shown = [(result.name, one) for result in results for one in result.attachments if _needs_user_message(one)]
    lines = [f"[{one.label}, returned by the tool {name}]" for name, one in shown]
    return Message(role="user", content="\n".join(lines), attachments=tuple(one for _, one in shown))


@dataclass(frozen=True, slots=True)
class AttachmentBlocks:
    """The blocks of the attachments of one request.

    blobs: the bytes by sha256. Missing bytes are no longer kept.
    refused: the kinds that this model has refused.
    """

    blobs: Mapping[str, bytes]
    refused: frozenset[AttachmentKind] = frozenset()

    def text(self, attachments: Iterable[Attachment]) -> list[str]:
        """Return the texts of the attachments that a tool's message of chat completions can hold."""
        return [self.in_words(one) for one in attachments if not _needs_user_message(one)]

    def anthropic(self, attachment: Attachment) -> dict[str, Any]:
        """Return a content block of the Messages API, for a user's message or a tool's result."""
        if not self.can_show(attachment):
            return {"type": "text", "text": self.in_words(attachment)}
        source = {"type": "base64", "media_type": attachment.media_type, "data": _base64(self.blobs[attachment.sha256])}
        if attachment_kind(attachment) == "image":
            return {"type": "image", "source": source}
        titled = {"title": clean(attachment.name)} if attachment.name else {}
        return {"type": "document", "source": source, **titled}

    def responses(self, attachment: Attachment) -> dict[str, Any]:
        """Return a content part of the Responses API, for a user's message or a call's output."""
        part = self.chat(attachment)
        match part["type"]:
            case "image_url":
                return {"type": "input_image", "image_url": part["image_url"]["url"], "detail": "auto"}
            case "file":
                return {"type": "input_file", **part["file"]}
            case _:
                return {"type": "input_text", "text": part["text"]}

    def chat(self, attachment: Attachment) -> dict[str, Any]:
        """Return a content part of chat completions, for a user's message."""
        if not self.can_show(attachment):
            return {"type": "text", "text": self.in_words(attachment)}
        url = f"data:{attachment.media_type};base64,{_base64(self.blobs[attachment.sha256])}"
        if attachment_kind(attachment) == "image":
            return {"type": "image_url", "image_url": {"url": url}}
        # The service requires a name for each file.
        return {"type": "file", "file": {"filename": clean(attachment.name) or "file.pdf", "file_data": url}}

    def can_show(self, attachment: Attachment) -> bool:
        kind = attachment_kind(attachment)
        return kind in SHOWABLE_KINDS and kind not in self.refused and attachment.sha256 in self.blobs

    def in_words(self, attachment: Attachment) -> str:
        """Return the text that replaces an attachment: its own text, or the reason why it is not shown."""
        data = self.blobs.get(attachment.sha256)
        if data is None:
            return f"[{clean(attachment.label)}: it is no longer kept]"
        if attachment_kind(attachment) != "text":
            return f"[{clean(attachment.label)}: it cannot be shown to this model]"
        return f"[{clean(attachment.label)}]\n{shortened(data.decode(errors='replace'), MAX_TEXT_CHARS)}"


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
