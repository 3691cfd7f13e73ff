"""The fields of a submit that hold files: taken out, with what stands for them in their place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from brainq.contracts.attachment import Attachment
from brainq.contracts.file import MOST_FILE_BYTES, File, FileLimits, read_files
from brainq.contracts.message import Message
from brainq.errors import InvalidInput

HISTORY = "history"


def parted_files(fields: Mapping[str, Any], limits: FileLimits) -> tuple[dict[str, Any], tuple[File, ...]]:
    """The fields as a TurnRequest takes them, and the files of its message and of its history.

    A producer sends bytes. What refers to bytes by their hash is brainq's own, and refused: a hash opens nothing.
    Raises InvalidInput naming the field.
    """
    parted = dict(fields)
    files = checked_files("attachments", parted.pop("attachments", None), limits)
    if files:
        parted["attachments"] = _references(files)
    told = parted.get(HISTORY)
    if isinstance(told, list | tuple):
        messages: list[object] = []
        for at, message in enumerate(cast("Sequence[object]", told)):
            message, brought = _parted_message(f"{HISTORY}[{at}].attachments", message, limits)
            messages.append(message)
            files = (*files, *brought)
        parted[HISTORY] = messages
    size = sum(len(file.data) for file in files)
    if size > MOST_FILE_BYTES:
        raise InvalidInput(
            HISTORY, f"its files and the message's have {size:,} bytes; send at most {MOST_FILE_BYTES:,}"
        )
    return parted, files


def checked_files(field: str, given: object, limits: FileLimits) -> tuple[File, ...]:
    """The files of one message. Raises InvalidInput naming what is wrong, or over the limits."""
    files = read_files(field, given)
    if why := limits.why_not(files):
        raise InvalidInput(field, why)
    return files


def _parted_message(field: str, message: object, limits: FileLimits) -> tuple[object, tuple[File, ...]]:
    if isinstance(message, Message):
        if message.attachments:
            raise InvalidInput(
                field, "a Message refers to files; send a dict whose attachments are File objects"
            )
        return message, ()
    if not isinstance(message, Mapping):
        return message, ()
    said = cast("Mapping[str, Any]", message)
    files = checked_files(field, said.get("attachments"), limits)
    return ({**said, "attachments": _references(files)} if files else message), files


def _references(files: Sequence[File]) -> tuple[Attachment, ...]:
    return tuple(file.attachment for file in files)
