"""TurnMailbox: input that came while a turn was at work, and the messages it becomes at the next step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import JsonValue

from brainq.contracts.message import Message
from brainq.contracts.people import HoldSpec, TurnInput, readiness_hold_id

INPUT_FRAME = "\n\n[Sent while you were working on the task above, which goes on.]"


@dataclass(frozen=True, slots=True)
class TurnDrain:
    """What was taken out of a mailbox at once.

    inputs      in the order they were accepted
    readiness   the newest that an input sets, True or False; None: no input sets it
    """

    inputs: tuple[TurnInput, ...] = ()
    readiness: bool | None = None


class TurnMailbox:
    """The pending inputs of one turn, oldest first. The same `client_message_id` twice is one message, the first."""

    def __init__(self, pending: Iterable[TurnInput] = ()) -> None:
        self._pending: dict[str, TurnInput] = {}
        for item in pending:
            self._pending.setdefault(item.client_message_id, item)

    def __len__(self) -> int:
        return len(self._pending)

    def drain(self) -> TurnDrain:
        """Take everything out. The newest readiness that is not None wins, whatever came after it without one."""
        inputs = tuple(self._pending.values())
        self._pending = {}
        readiness = (item.readiness for item in reversed(inputs) if item.readiness is not None)
        return TurnDrain(inputs, next(readiness, None))


def input_messages(drain: TurnDrain, turn_id: str, step: int) -> tuple[Message, ...]:
    """One user message an input, as it was sent; an input without words, which only says readiness, is none.

    `extra["input"]` is its `client_message_id`; `extra["merged"]` marks one that belongs to the question.
    """
    return tuple(
        Message(
            role="user",
            content=item.text,
            turn=turn_id,
            step=step,
            extra=_input_mark(item),
            attachments=item.attachments,
        )
        for item in drain.inputs
        # Providers refuse a message that is nothing but space.
        if item.text.strip() or item.attachments
    )


def frame_input(message: Message) -> Message:
    """The message as the model is shown it: input sent into a running turn says that the task goes on.

    Every other message, a merged input among them, is returned as it is.
    """
    extra = message.extra
    if extra is None or "input" not in extra or extra.get("merged"):
        return message
    return message.model_copy(update={"content": message.content + INPUT_FRAME})


def readiness_word(drain: TurnDrain) -> HoldSpec | str:
    """What the step that reads these inputs makes of their readiness: `ready`, a hold, or "" for nothing."""
    if drain.readiness is None:
        return ""
    if drain.readiness:
        return "ready"
    newest = next(item for item in reversed(drain.inputs) if item.readiness is False)
    return HoldSpec(id=readiness_hold_id(newest.client_message_id), reason="set by the input")


def _input_mark(item: TurnInput) -> dict[str, JsonValue]:
    mark: dict[str, JsonValue] = {"input": item.client_message_id}
    return mark | {"merged": True} if item.merged else mark
