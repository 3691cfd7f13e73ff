"""Messages of a task, and the parts they are of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from a2a.types.a2a_pb2 import ROLE_AGENT, Message, Part
from google.protobuf import json_format, struct_pb2

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Ask:
    """What a call wants of people, or of the client.

    call        its id over all turns, which is also the approval's
    wants       `approval`, or the `result` of the client's own tool
    arguments   None where they are not at hand
    args_hash   what a decision may be bound to
    """

    call: str
    wants: Literal["approval", "result"]
    tool: str
    reason: str = ""
    expires_at_ms: int = 0
    arguments: Any = None
    args_hash: str = ""

    @property
    def told(self) -> dict[str, Any]:
        """As a data part of the status."""
        expires = datetime.fromtimestamp(self.expires_at_ms / 1000, UTC).isoformat(timespec="milliseconds")
        facts = {
            "call": self.call,
            "wants": self.wants,
            "tool": self.tool,
            "reason": self.reason,
            "expires_at": expires.replace("+00:00", "Z") if self.expires_at_ms else "",
            "arguments": self.arguments,
            "args_hash": self.args_hash,
        }
        return {name: fact for name, fact in facts.items() if fact not in ("", None)}


def asking(task_id: str, context_id: str, seq: int, asks: Sequence[Ask]) -> Message:
    """The message of a status that waits for answers: words for people, then one data part for each."""
    words = "; ".join(
        f"{ask.tool} needs {'an approval' if ask.wants == 'approval' else 'its result'}"
        + (f" ({ask.reason})" if ask.reason else "")
        for ask in asks
    )
    parts = [text_part(words), *(data_part(ask.told) for ask in asks)]
    return _message(task_id, context_id, seq, parts)


def saying(task_id: str, context_id: str, seq: int, text: str) -> Message:
    return _message(task_id, context_id, seq, [text_part(text)])


def text_part(text: str) -> Part:
    return Part(text=text)


def data_part(value: Any) -> Part:
    return Part(data=json_format.ParseDict(value, struct_pb2.Value()), media_type=JSON)


def _message(task_id: str, context_id: str, seq: int, parts: list[Part]) -> Message:
    """The same status has the same message id, whoever folds it."""
    return Message(
        message_id=f"{task_id}-{seq}", context_id=context_id, task_id=task_id, role=ROLE_AGENT, parts=parts
    )
