"""Incoming files: bytes with a type and a name.

They are checked before they are stored, and separated from the fields of a submit.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import mimetypes
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Self, cast

from brainq.contracts.message import Attachment, Message
from brainq.errors import InvalidInput

MAX_FILES = 20
MAX_FILE_BYTES = 40_000_000
"""The limit for a message or a result, whatever the settings are: a tool's process sends it in one frame."""
MAX_NAME_CHARS = 255
_MEDIA_TYPE = re.compile(r"[a-z0-9.+-]+/[a-z0-9.+-]+")
_DATA_URL = re.compile(r"data:([^;,]*)((?:;[^,]*?)?),", re.DOTALL)
_MEDIA_TYPE_ALIASES = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "application/x-pdf": "application/pdf"}
_UNKNOWN_MEDIA_TYPE = "application/octet-stream"
_FIELDS = ("data", "media_type", "name")
_SNIFFED_MEDIA_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf")
HISTORY_FIELD = "history"


@dataclass(frozen=True)
class File:
    """An image or a file in memory: `File.of("plan.png")`, or `File(data=..., media_type="image/png")`.

    data: its bytes.
    media_type: by default, the type of its first bytes, or else of its name, or else `text/plain` for UTF-8.
    name: its name for the model and people. May be empty.

    Raises InvalidInput for an empty file, for an invalid type, and for an image or a PDF with bytes of another kind:
    models' services refuse the whole request for it.
    """

    data: bytes = field(repr=False)
    media_type: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        given = cast("object", self.data)
        if not isinstance(given, bytes | bytearray):
            raise InvalidInput("data", f"use bytes, not {type(given).__name__}; File.of(path) reads a file")
        data = bytes(given)
        if not data:
            raise InvalidInput("data", "the file is empty; send its bytes")
        object.__setattr__(self, "data", data)
        object.__setattr__(self, "name", _safe_name(self.name))
        object.__setattr__(self, "media_type", _checked_type(self.media_type, data, self.name))

    @classmethod
    def of(cls, path: str | PathLike[str], *, media_type: str = "", name: str = "") -> Self:
        """Read the file at `path`, under its own name. Raises InvalidInput if it cannot be read."""
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise InvalidInput("path", f"cannot read {str(path)!r}: {error.strerror or error}") from None
        return cls(data, media_type, name or Path(path).name)

    @classmethod
    def from_base64(cls, field: str, data: object, *, media_type: str = "", name: str = "") -> Self:
        """Read base64, or a `data:` URL, as JSON carries files. Raises InvalidInput naming `field`."""
        if not isinstance(data, str):
            raise InvalidInput(field, "send the bytes as base64 text, or as a data: URL")
        if data[:5].lower() == "data:":
            begun = _DATA_URL.match(data)
            if begun is None or "base64" not in begun[2].lower():
                raise InvalidInput(field, "a data: URL must be `data:<type>;base64,<bytes>`")
            media_type, data = media_type or begun[1], data[begun.end() :]
        elif re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", data):
            raise InvalidInput(
                field,
                "it is an address, and brainq fetches nothing that a request names; send the bytes as "
                "base64, or as a data: URL",
            )
        try:
            raw = base64.b64decode("".join(data.split()), validate=True)
        except (binascii.Error, ValueError):
            raise InvalidInput(field, "it is not base64; send the file's bytes as base64 text") from None
        try:
            return cls(raw, media_type, name)
        except InvalidInput as refused:
            raise InvalidInput(f"{field.removesuffix('.data')}.{refused.field}", refused.problem) from None

    @cached_property
    def attachment(self) -> Attachment:
        """The reference to this file in a message."""
        return Attachment(
            sha256=hashlib.sha256(self.data).hexdigest(),
            media_type=self.media_type,
            size=len(self.data),
            name=self.name,
        )


@dataclass(frozen=True, slots=True)
class FileLimits:
    """The maximum size of one file, and of all files of a message together, in bytes."""

    one: int = 10_000_000
    message: int = 30_000_000

    def at_most(self, size: int) -> FileLimits:
        """Return the same limits with at most `size` bytes together."""
        return FileLimits(min(self.one, size), min(self.message, size))

    def problem_with(self, files: Sequence[File]) -> str:
        """Return why these files exceed the limits of one message, or "" if they do not."""
        if len(files) > MAX_FILES:
            return f"there are {len(files)}; send at most {MAX_FILES} with a message"
        for file in files:
            if len(file.data) > self.one:
                called = repr(file.name) if file.name else "one of them"
                return f"{called} has {len(file.data):,} bytes; a file may have {self.one:,} (BRAINQ_MAX_FILE_BYTES)"
        total = sum(len(file.data) for file in files)
        if total > self.message:
            return (
                f"they have {total:,} bytes together; those of one message may have {self.message:,} "
                "(BRAINQ_MAX_MESSAGE_FILE_BYTES)"
            )
        return ""


WIDEST_FILE_LIMITS = FileLimits(MAX_FILE_BYTES, MAX_FILE_BYTES)


def read_files(field: str, given: object) -> tuple[File, ...]:
    """Return the attachments of a producer: Files, or objects with base64 `data`, and optionally `media_type` and
    `name`.

    Raises InvalidInput naming the file.
    """
    if given is None:
        return ()
    if isinstance(given, File):
        return (given,)
    if not isinstance(given, list | tuple):
        raise InvalidInput(field, f"use a list of File, not {type(given).__name__}")
    items = cast("Sequence[object]", given)
    return tuple(_read_file(f"{field}[{at}]", item) for at, item in enumerate(items))


def _read_file(field: str, given: object) -> File:
    if isinstance(given, File):
        return given
    if not isinstance(given, Mapping):
        raise InvalidInput(field, "use a File, or an object of data (base64), media_type and name")
    item = cast("Mapping[str, Any]", given)
    for name in item:
        if name not in _FIELDS:
            raise InvalidInput(f"{field}.{name}", f"there is no such field; the fields are {', '.join(_FIELDS)}")
    for name in ("media_type", "name"):
        if not isinstance(item.get(name, ""), str):
            raise InvalidInput(f"{field}.{name}", "it must be a text")
    if isinstance(item.get("data"), bytes):
        return File(item["data"], item.get("media_type", ""), item.get("name", ""))
    return File.from_base64(
        f"{field}.data", item.get("data"), media_type=item.get("media_type", ""), name=item.get("name", "")
    )


def _safe_name(name: object) -> str:
    if not isinstance(name, str):
        raise InvalidInput("name", "it must be a text")
    # One line without a path: it is shown to models and people, and offered to browsers.
    plain = "".join(c if c.isprintable() else " " for c in name.encode("utf-8", "ignore").decode())
    return " ".join(re.split(r"[\\/]", plain)[-1].split())[:MAX_NAME_CHARS]


def _checked_type(given: object, data: bytes, name: str) -> str:
    if not isinstance(given, str):
        raise InvalidInput("media_type", "it must be a text, such as `image/png`")
    media_type = given.split(";")[0].strip().lower()
    media_type = _MEDIA_TYPE_ALIASES.get(media_type, media_type)
    found = _sniffed_type(data)
    if not media_type or media_type == _UNKNOWN_MEDIA_TYPE:
        return found or _guessed_type(data, name)
    if not _MEDIA_TYPE.fullmatch(media_type) or len(media_type) > 127:
        raise InvalidInput(
            "media_type", f"{given[:60]!r} is not a media type; use one such as `image/png`, or leave it out"
        )
    if found != media_type and (found or media_type in _SNIFFED_MEDIA_TYPES):
        what = f"are {found}" if found else "are not"
        raise InvalidInput("media_type", f"it is {media_type}, but the bytes {what}; leave it out, or send that file")
    return media_type


def _sniffed_type(data: bytes) -> str:
    """Return the type that the first bytes show, if models' services check it, or else ""."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    if data.startswith(b"%PDF-"):
        return "application/pdf"
    return ""


def _guessed_type(data: bytes, name: str) -> str:
    guessed = (mimetypes.guess_type(name)[0] or "").lower()
    if guessed and _MEDIA_TYPE.fullmatch(guessed) and guessed not in _SNIFFED_MEDIA_TYPES:
        return guessed
    try:
        return "text/plain" if "\0" not in data.decode() else _UNKNOWN_MEDIA_TYPE
    except UnicodeDecodeError:
        return _UNKNOWN_MEDIA_TYPE


def extract_files(fields: Mapping[str, Any], limits: FileLimits) -> tuple[dict[str, Any], tuple[File, ...]]:
    """Return the fields of a TurnRequest, and the files of its message and of its history.

    A producer must send bytes. References by hash are refused, so that knowing a hash gives access to nothing. Raises
    InvalidInput naming the field.
    """
    if fields.get("attachments") is None and fields.get(HISTORY_FIELD) is None:
        return dict(fields), ()
    parted = dict(fields)
    files = check_files("attachments", parted.pop("attachments", None), limits)
    if files:
        parted["attachments"] = _attachments(files)
    history = parted.get(HISTORY_FIELD)
    if isinstance(history, list | tuple):
        messages: list[object] = []
        for at, message in enumerate(cast("Sequence[object]", history)):
            message, brought = _extract_message_files(f"{HISTORY_FIELD}[{at}].attachments", message, limits)
            messages.append(message)
            files = (*files, *brought)
        parted[HISTORY_FIELD] = messages
    size = sum(len(file.data) for file in files)
    if size > MAX_FILE_BYTES:
        raise InvalidInput(
            HISTORY_FIELD, f"its files and the message's have {size:,} bytes; send at most {MAX_FILE_BYTES:,}"
        )
    return parted, files


def check_files(field: str, given: object, limits: FileLimits) -> tuple[File, ...]:
    """Return the files of one message. Raises InvalidInput naming the file that is invalid or over the limits."""
    files = read_files(field, given)
    if why := limits.problem_with(files):
        raise InvalidInput(field, why)
    return files


def _extract_message_files(field: str, message: object, limits: FileLimits) -> tuple[object, tuple[File, ...]]:
    if isinstance(message, Message):
        if message.attachments:
            raise InvalidInput(field, "a Message refers to files; send a dict whose attachments are File objects")
        return message, ()
    if not isinstance(message, Mapping):
        return message, ()
    fields = cast("Mapping[str, Any]", message)
    files = check_files(field, fields.get("attachments"), limits)
    return ({**fields, "attachments": _attachments(files)} if files else message), files


def _attachments(files: Sequence[File]) -> tuple[Attachment, ...]:
    return tuple(file.attachment for file in files)
