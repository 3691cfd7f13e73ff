"""What a message says: words, and in its data parts answers to what a task asks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from a2a.types.a2a_pb2 import Message, Part
from a2a.utils.errors import ContentTypeNotSupportedError
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from brainq.contracts.file import File
from brainq.contracts.first_wrong import first_wrong
from brainq.errors import InvalidInput
from brainq.http.a2a.rpc import as_json
from brainq.http.gateway import CALL_ID


class Decision(BaseModel):
    """An approval is decided. `arguments` are put in place of the model's, and approved."""

    model_config = ConfigDict(extra="forbid")

    call: str = Field(pattern=CALL_ID)
    decision: Literal["approve", "deny"]
    reason: str = Field(default="", max_length=2_000)
    args_hash: str | None = Field(default=None, max_length=200)
    arguments: dict[str, JsonValue] | None = None


class CallResult(BaseModel):
    """What a call of the client's own tool brought; or why it brought nothing, in one line."""

    model_config = ConfigDict(extra="forbid")

    call: str = Field(pattern=CALL_ID)
    result: JsonValue = None
    error: str | None = Field(default=None, min_length=1)


Answer = Decision | CallResult


@dataclass(frozen=True, slots=True)
class Said:
    """What a message to a task says."""

    text: str
    answers: tuple[Answer, ...]
    files: tuple[File, ...] = ()

    @property
    def says(self) -> bool:
        """Whether there is anything in it for the model."""
        return bool(self.text.strip() or self.files)


def words_of(message: Message) -> str:
    """All of a message that begins a task, as the user's words; data as JSON. Raises ContentTypeNotSupportedError."""
    return "\n\n".join(
        part.text if part.HasField("text") else json.dumps(_data(part), ensure_ascii=False)
        for part in message.parts
        if not part.HasField("raw")
    )


def files_of(message: Message) -> tuple[File, ...]:
    """The files of a message, by their bytes. Raises InvalidInput."""
    return tuple(
        File(part.raw, part.media_type, part.filename) for part in message.parts if part.HasField("raw")
    )


def said_in(message: Message) -> Said:
    """A message to a task. Raises ContentTypeNotSupportedError; InvalidInput for data that answers nothing."""
    return Said(
        "\n\n".join(part.text for part in message.parts if part.HasField("text")),
        tuple(
            _answer(_data(part))
            for part in message.parts
            if not part.HasField("text") and not part.HasField("raw")
        ),
        files_of(message),
    )


def _data(part: Part) -> Any:
    if not part.HasField("data"):
        raise ContentTypeNotSupportedError(
            "text, data and raw bytes are taken; send a file's bytes, for nothing is fetched that a message names"
        )
    return as_json(part.data)


def _answer(data: Any) -> Answer:
    kind = CallResult if isinstance(data, dict) and ("result" in data or "error" in data) else Decision
    try:
        return kind.model_validate(data)
    except ValidationError as wrong:
        told = first_wrong(wrong.errors(include_url=False), data, under="message.parts.data")
        raise InvalidInput(
            told.field,
            f"{told.problem}; send {{call, decision: approve or deny}}, or {{call, result}} of a tool of your own",
        ) from None
