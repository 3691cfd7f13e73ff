"""From the result of a tools/call to what the model reads. Pure."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from brainq.contracts.file import MAX_FILES, MOST_FILE_BYTES, File
from brainq.errors import InvalidInput


def read_result(result: Mapping[str, Any]) -> Any:
    """`result` is the protocol's CallToolResult as JSON; what it says, without the files of `files_of`.

    Texts are joined by line breaks; pictures, sound and files are described by type and size. Structured content is
    kept as it is; where the text says the same, there is no second copy of it.
    """
    content = cast("Sequence[Mapping[str, Any]]", result.get("content") or ())
    text = text_of(content)
    structured = result.get("structuredContent")
    if structured is None or _only_wraps(structured, text, content):
        return text
    if not text or _holds(structured, text) or _is_same(text, structured):
        return structured
    return {"text": text, "structured": structured}


def files_of(content: Sequence[Mapping[str, Any]]) -> tuple[File, ...]:
    """The pictures, sound and binary resources, in their order; without those whose bytes are not what they are said
    to be, and those beyond what one result may bring."""
    found: list[File] = []
    size = 0
    for block in content:
        file = _file(block)
        if file is None or len(found) == MAX_FILES or size + len(file.data) > MOST_FILE_BYTES:
            continue
        found.append(file)
        size += len(file.data)
    return tuple(found)


def text_of(content: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(_block(block) for block in content)


def _only_wraps(structured: Any, text: str, content: Sequence[Mapping[str, Any]]) -> bool:
    """Whether it is the text, or the content itself, under one name, as servers make it to fit an output schema."""
    if not isinstance(structured, dict) or len(cast("dict[str, Any]", structured)) != 1:
        return False
    (value,) = cast("dict[str, Any]", structured).values()
    return value == text or (bool(content) and value == content)


def _holds(structured: Any, text: str) -> bool:
    return isinstance(structured, dict) and text in cast("dict[str, Any]", structured).values()


def _is_same(text: str, structured: Any) -> bool:
    try:
        read: Any = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return read in (structured, structured.get("result") if isinstance(structured, dict) else None)


def _block(block: Mapping[str, Any]) -> str:
    match block.get("type"):
        case "text":
            return str(block.get("text", ""))
        case "image" | "audio" as kind:
            return f"[{kind}: {block.get('mimeType', 'of an unknown type')}, {_size(block.get('data'))}]"
        case "resource":
            return _resource(cast("Mapping[str, Any]", block.get("resource") or {}))
        case "resource_link":
            size = block.get("size")
            facts = [str(block.get("name", "")), str(block.get("uri", "")), str(block.get("mimeType") or "")]
            facts += [f"{size:,} bytes"] if isinstance(size, int) else []
            return f"[link: {', '.join(fact for fact in facts if fact)}]"
        case kind:
            return f"[content of type {kind!r}]"


def _resource(resource: Mapping[str, Any]) -> str:
    name = f"{resource.get('uri', '')}, {resource.get('mimeType') or 'of an unknown type'}"
    if "text" in resource:
        return f"[resource: {name}]\n{resource['text']}"
    return f"[resource: {name}, {_size(resource.get('blob'))}]"


def _size(data: object) -> str:
    """Of base64, without decoding it."""
    text = str(data or "").rstrip("=\n")
    return f"{len(text) * 3 // 4:,} bytes"


def _file(block: Mapping[str, Any]) -> File | None:
    name = ""
    if block.get("type") == "resource":
        block = cast("Mapping[str, Any]", block.get("resource") or {})
        name = str(block.get("uri", ""))
    elif block.get("type") not in ("image", "audio"):
        return None
    data = block.get("data") or block.get("blob")
    if not isinstance(data, str):
        return None
    try:
        return File(base64.b64decode(data, validate=True), str(block.get("mimeType") or ""), name)
    except (binascii.Error, ValueError, InvalidInput):
        return None
