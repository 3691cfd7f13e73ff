"""Files in what chat clients send: bytes as base64 or `data:` URLs, beside a message's text. Pure.

A web address is rejected: brainq fetches no address of a request, for its network reaches further than the caller's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from brainq.contracts.conversation import newest_within_limits
from brainq.contracts.file import File
from brainq.contracts.message import Message
from brainq.errors import InvalidInput

NO_FILE_IDS = "file ids are not supported; send the bytes, as base64 or as a data: URL"


def decode_file(field: str, data: object, media_type: object = "", name: object = "") -> File:
    """Raises InvalidInput naming `field`."""
    kind = media_type if isinstance(media_type, str) else ""
    return File.of_text(field, data, media_type=kind, name=name if isinstance(name, str) else "")


def decode_openai_file(field: str, part: Mapping[str, Any]) -> File | None:
    """The file in a part of a user's message, over either of OpenAI's wires; None for a part of another type."""
    match part.get("type"):
        case "image_url" | "input_image":
            held = part.get("image_url")
            if held is None and part.get("file_id") is not None:
                raise InvalidInput(f"{field}.file_id", NO_FILE_IDS)
            url = cast("Mapping[str, Any]", held).get("url") if isinstance(held, Mapping) else held
            return decode_file(f"{field}.image_url", url)
        case "file" | "input_file" as kind:
            inner = part.get("file") if kind == "file" else part
            fields = cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else {}
            for name in ("file_id", "file_url"):
                if fields.get("file_data") is None and fields.get(name) is not None:
                    raise InvalidInput(f"{field}.{name}", NO_FILE_IDS)
            return decode_file(f"{field}.file_data", fields.get("file_data"), name=fields.get("filename"))
        case _:
            return None


def embed_files(messages: Sequence[Message], files: Mapping[str, File]) -> list[Message | Mapping[str, Any]]:
    """The messages as `submit` takes them: each file reference is replaced by the file."""
    return [
        {
            "role": message.role,
            "content": message.content,
            "call_id": message.call_id,
            "name": message.name,
            "attachments": [files[one.sha256] for one in message.attachments],
        }
        if message.attachments
        else message
        for message in messages
    ]


def read_history(history: Sequence[Mapping[str, Any]]) -> list[Message | Mapping[str, Any]]:
    """The newest of these messages that a session may begin with; `attachments` are Files."""
    files: dict[str, File] = {}
    messages: list[Message] = []
    for entry in history:
        sent: Sequence[File] = entry.get("attachments", ())
        files.update((file.attachment.sha256, file) for file in sent)
        references = tuple(file.attachment for file in sent)
        messages.append(Message.model_validate({**entry, "attachments": references}))
    return embed_files(newest_within_limits(messages), files)
