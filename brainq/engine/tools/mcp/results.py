"""The result of a call of a server's tool as the model reads it, and its failures, by what is known of the effect."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from brainq.contracts.file import MAX_FILE_BYTES, MAX_FILES, File
from brainq.engine.tools.mcp.server import SecretFilter
from brainq.engine.tools.results import WithFiles
from brainq.errors import InvalidInput


class ServerFailure(Exception):
    """The failure of a call that has no result.

    The model reads `str(failure)`, which contains no configuration of the server.

    ends_session: whether the next call uses another session.
    repeats: which calls are repeated: any, idempotent ones, reads, or none.
    """

    retryable = False
    ends_session = False
    repeats: Literal["any", "idempotent", "read", "none"] = "none"


class ServerReportedFailure(ServerFailure):
    """A failure that the server itself reported."""


class ConnectionNotOpen(ServerFailure):
    """The failure of a connection: the server did not start, or may not be started again yet."""

    retryable = True


class CallNeverRan(ServerFailure):
    """The failure of a request that the server refused before the tool began.

    retryable: whether the model reads that it may try again.
    """

    def __init__(self, words: str, *, retryable: bool = False) -> None:
        super().__init__(words)
        self.retryable = retryable


class RequestNotSent(CallNeverRan):
    """The failure of a request that no server accepted."""

    ends_session = True
    repeats = "any"

    def __init__(self, words: str) -> None:
        super().__init__(words, retryable=True)


class SessionGone(RequestNotSent):
    """The failure of a request whose session the server does not know. It ran nothing."""


class RequestRefused(CallNeverRan):
    """The failure of a request that was refused by its HTTP status, such as 401 or 429."""


class InvalidRequest(CallNeverRan):
    """The failure of a request that the server called invalid.

    It may need another session, but a tool may also mean its arguments, so a change is not repeated.
    """

    ends_session = True
    repeats = "read"


class OutcomeInDoubt(ServerFailure):
    """The failure of a request that was sent, if no answer shows whether it ran.

    is_lost: whether the connection is lost, too.
    may_repeat: False if the same would happen again.
    """

    def __init__(self, words: str, *, is_lost: bool, may_repeat: bool = True) -> None:
        super().__init__(words)
        self.is_lost = self.ends_session = is_lost
        self.repeats = "idempotent" if is_lost and may_repeat else "none"


class UnreadableAnswer(OutcomeInDoubt):
    """The failure of a call whose answer cannot be read."""


def may_repeat(failure: ServerFailure, *, is_read: bool, is_idempotent: bool) -> bool:
    """Return whether a call with this failure is repeated."""
    allowed = {"any": True, "idempotent": is_read or is_idempotent, "read": is_read, "none": False}
    return allowed[failure.repeats]


def read_result(result: Mapping[str, Any]) -> Any:
    """Return the text and the structured content of the protocol's CallToolResult as JSON, without the files of
    `result_files`.

    Texts are joined by line breaks; pictures, sound and files are described by type and size. Structured content is
    kept unchanged. If the text repeats it, there is no second copy.
    """
    content = cast("Sequence[Mapping[str, Any]]", result.get("content") or ())
    text = result_text(content)
    structured = result.get("structuredContent")
    if structured is None or _only_wraps(structured, text, content):
        return text
    if not text or _contains_text(structured, text) or _is_same(text, structured):
        return structured
    return {"text": text, "structured": structured}


def result_files(content: Sequence[Mapping[str, Any]]) -> tuple[File, ...]:
    """Return the pictures, sound and binary resources in order, without those of another type than they claim, and
    those beyond the limits of one result."""
    found: list[File] = []
    size = 0
    for block in content:
        file = _file(block)
        if file is None or len(found) == MAX_FILES or size + len(file.data) > MAX_FILE_BYTES:
            continue
        found.append(file)
        size += len(file.data)
    return tuple(found)


def result_text(content: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(_block_text(block) for block in content)


def _only_wraps(structured: Any, text: str, content: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether it is the text, or the content itself, under one name, as servers make it to fit an output
    schema."""
    if not isinstance(structured, dict) or len(cast("dict[str, Any]", structured)) != 1:
        return False
    (value,) = cast("dict[str, Any]", structured).values()
    return value == text or (bool(content) and value == content)


def _contains_text(structured: Any, text: str) -> bool:
    return isinstance(structured, dict) and text in cast("dict[str, Any]", structured).values()


def _is_same(text: str, structured: Any) -> bool:
    try:
        read: Any = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return read in (structured, structured.get("result") if isinstance(structured, dict) else None)


def _block_text(block: Mapping[str, Any]) -> str:
    match block.get("type"):
        case "text":
            return str(block.get("text", ""))
        case "image" | "audio" as kind:
            return f"[{kind}: {block.get('mimeType', 'of an unknown type')}, {_base64_size(block.get('data'))}]"
        case "resource":
            return _resource_text(cast("Mapping[str, Any]", block.get("resource") or {}))
        case "resource_link":
            size = block.get("size")
            facts = [str(block.get("name", "")), str(block.get("uri", "")), str(block.get("mimeType") or "")]
            facts += [f"{size:,} bytes"] if isinstance(size, int) else []
            return f"[link: {', '.join(fact for fact in facts if fact)}]"
        case kind:
            return f"[content of type {kind!r}]"


def _resource_text(resource: Mapping[str, Any]) -> str:
    name = f"{resource.get('uri', '')}, {resource.get('mimeType') or 'of an unknown type'}"
    if "text" in resource:
        return f"[resource: {name}]\n{resource['text']}"
    return f"[resource: {name}, {_base64_size(resource.get('blob'))}]"


def _base64_size(data: object) -> str:
    """Return the size of the data, without decoding it."""
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


def tool_result(result: Mapping[str, Any], secrets: SecretFilter) -> Any:
    """Read the protocol's CallToolResult as JSON. Raises ServerReportedFailure if the tool failed."""
    content = result.get("content") or ()
    if result.get("isError") is True:
        raise ServerReportedFailure(result_text(content) or "The tool failed, and did not say why.")
    value, files = secrets.hide_in(read_result(result)), result_files(content)
    return WithFiles(value, files) if files else value
