"""Messages of a request: read into a new turn, or into results of calls that wait. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pydantic import JsonValue

from brainq.contracts.file import File
from brainq.contracts.ids import check_turn_id, split_call_id
from brainq.contracts.message import Message, ToolCall
from brainq.errors import InvalidInput
from brainq.gateway.wires.chat.requests import decode_openai_file


@dataclass(frozen=True, slots=True)
class InputMessage:
    """One message in the words of neither wire. `field` is where it stood in the request.

    calls     (id, name, arguments as text) of an assistant's
    call_id   of a result
    files     of a user's, or of a result
    """

    field: str
    role: str
    text: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    call_id: str = ""
    files: tuple[File, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnInput:
    """A new turn: the user's last message, the conversation before it, and the developer's instructions for both.

    files     beside the text
    brought   the files that the history refers to, by their sha256
    """

    text: str
    history: tuple[Message, ...]
    instructions: str
    files: tuple[File, ...] = ()
    brought: Mapping[str, File] = field(default_factory=dict[str, File])


@dataclass(frozen=True, slots=True)
class ToolResults:
    """Results for calls of a turn that waits for them: (call's id in the turn, text, files); and what the user adds.

    field   where they stood in the request
    """

    turn_id: str
    results: tuple[tuple[str, str, tuple[File, ...]], ...]
    field: str
    text: str = ""
    files: tuple[File, ...] = ()

    @property
    def calls(self) -> frozenset[str]:
        return frozenset(call for call, _, _ in self.results)


def read_messages(field: str, entries: Sequence[InputMessage]) -> TurnInput | ToolResults:
    """A request's new turn or results, by its last messages. Raises InvalidInput naming the message."""
    instructions = "\n\n".join(
        entry.text for entry in entries if entry.role in ("system", "developer") and entry.text.strip()
    )
    messages = [entry for entry in entries if entry.role not in ("system", "developer")]
    if not messages:
        raise InvalidInput(field, "it says nothing of a user's; send a message of the role user")
    last = messages[-1]
    if last.role == "tool":
        return _read_results(messages)
    if messages[0].role == "tool" and all(entry.role != "assistant" for entry in messages):
        # Results for an answer that the request names elsewhere, then the user's message.
        at = next(i for i, entry in enumerate(messages) if entry.role != "tool")
        if all(entry.role == "user" for entry in messages[at:]):
            return replace(_read_results(messages[:at]), text=_join_texts(messages[at:]), files=_files(messages[at:]))
    if last.role != "user":
        raise InvalidInput(
            last.field, "the last message is the assistant's, and nothing is left to answer; send the user's"
        )
    begin = next((i + 1 for i in range(len(messages) - 1, -1, -1) if messages[i].role != "user"), 0)
    text, files = _join_texts(messages[begin:]), _files(messages[begin:])
    if not text and not files:
        raise InvalidInput(last.field, "it is empty; say something")
    brought = {file.attachment.sha256: file for file in _files(messages[:begin])}
    return TurnInput(text, tuple(_history(messages[:begin])), instructions, files, brought)


def read_content(
    field: str, content: object, kinds: Sequence[str], *, with_files: bool
) -> tuple[str, tuple[File, ...]]:
    """The text of a message's content, and the files beside it. Raises InvalidInput naming the part."""
    if content is None:
        return "", ()
    if isinstance(content, str):
        return content, ()
    if not isinstance(content, list):
        raise InvalidInput(field, "it must be a text, or a list of parts")
    texts: list[str] = []
    files: list[File] = []
    for at, part in enumerate(cast("list[object]", content)):
        where = f"{field}[{at}]"
        found = cast("dict[str, Any]", part) if isinstance(part, dict) else {}
        kind = found.get("type")
        file = decode_openai_file(where, found) if with_files else None
        if file is not None:
            files.append(file)
            continue
        if kind not in kinds:
            raise InvalidInput(where, f"parts of the type {kind!r} are not taken; send {', '.join(kinds)}")
        text = found.get("refusal" if kind == "refusal" else "text")
        if not isinstance(text, str):
            raise InvalidInput(where, "its text is missing")
        texts.append(text)
    return "".join(texts), tuple(files)


def _read_results(messages: Sequence[InputMessage]) -> ToolResults:
    """The results at the end, for calls of one turn of ours."""
    begin = next((i + 1 for i in range(len(messages) - 1, -1, -1) if messages[i].role != "tool"), 0)
    turns: set[str] = set()
    results: dict[str, tuple[str, tuple[File, ...]]] = {}
    for entry in messages[begin:]:
        try:
            turn_id, call = split_call_id(entry.call_id)
            check_turn_id(entry.field, turn_id)
        except InvalidInput:
            raise InvalidInput(
                entry.field,
                f"{entry.call_id[:80]!r} is not a call that was made here; send results for the ids that were given, "
                "or a message of the user behind them",
            ) from None
        turns.add(turn_id)
        results[call] = (entry.text, entry.files)
    if len(turns) > 1:
        raise InvalidInput(messages[-1].field, "the results are for calls of several answers; send those of one")
    requested = messages[begin - 1].calls if begin else ()
    given = {entry.call_id for entry in messages[begin:]}
    if missing := [call for call, _, _ in requested if call not in given]:
        raise InvalidInput(messages[-1].field, f"the call {missing[0]!r} has no result; send one for each call")
    found = tuple((call, text, files) for call, (text, files) in results.items())
    return ToolResults(turns.pop(), found, messages[-1].field)


def _join_texts(messages: Sequence[InputMessage]) -> str:
    return "\n\n".join(entry.text for entry in messages if entry.text.strip())


def _files(messages: Sequence[InputMessage]) -> tuple[File, ...]:
    return tuple(file for entry in messages for file in entry.files)


def _history(messages: Sequence[InputMessage]) -> list[Message]:
    """The messages, the results of each reply in the order of its calls."""
    history: list[Message] = []
    at = 0
    while at < len(messages):
        entry = messages[at]
        at += 1
        if entry.role == "tool":
            raise InvalidInput(entry.field, f"no message before it made the call {entry.call_id[:80]!r}")
        if not entry.text.strip() and not entry.calls and not entry.files:
            continue  # services leave such behind; there is nothing in it
        calls = tuple(ToolCall(id=i, name=name, arguments=_arguments(text)) for i, name, text in entry.calls)
        references = tuple(file.attachment for file in entry.files)
        history.append(Message(role=cast("Any", entry.role), content=entry.text, calls=calls, attachments=references))
        results: dict[str, InputMessage] = {}
        while at < len(messages) and messages[at].role == "tool":
            results.setdefault(messages[at].call_id, messages[at])
            at += 1
        for call in calls:
            found = results.pop(call.id, None)
            if found is None:
                raise InvalidInput(entry.field, f"its call {call.id[:80]!r} has no result behind it")
            shown = tuple(file.attachment for file in found.files)
            history.append(Message(role="tool", content=found.text, call_id=call.id, name=call.name, attachments=shown))
        if results:
            odd = next(iter(results.values()))
            raise InvalidInput(odd.field, f"no message before it made the call {odd.call_id[:80]!r}")
    return history


def _arguments(text: str) -> dict[str, Any] | str:
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return text
    return cast("dict[str, Any]", found) if isinstance(found, dict) else text


ITEM_ROLES = ("user", "assistant", "system", "developer")
_SKIPPED_ITEMS = ("reasoning",)
"""Items that other services gave, and that say nothing here."""


def read_items(given: str | list[dict[str, JsonValue]]) -> list[InputMessage]:
    """Raises InvalidInput naming the item. Calls that stand one behind another are of one reply."""
    if isinstance(given, str):
        return [InputMessage("input", "user", given)]
    entries: list[InputMessage] = []
    for at, item in enumerate(given):
        field, kind = f"input[{at}]", item.get("type", "message")
        if kind in _SKIPPED_ITEMS:
            continue
        if kind == "function_call":
            call = tuple(_text(field, item, name) for name in ("call_id", "name", "arguments"))
            last = entries[-1] if entries else None
            if last is not None and last.role == "assistant":
                entries[-1] = InputMessage(last.field, "assistant", last.text, (*last.calls, cast("Any", call)))
            else:
                entries.append(InputMessage(field, "assistant", calls=(cast("Any", call),)))
        elif kind == "function_call_output":
            kinds = ("input_text", "text")
            output, sent = read_content(f"{field}.output", item.get("output"), kinds, with_files=True)
            entries.append(InputMessage(field, "tool", output, call_id=_text(field, item, "call_id"), files=sent))
        elif kind == "message":
            role = item.get("role")
            if role not in ITEM_ROLES:
                raise InvalidInput(f"{field}.role", f"it is not one of {', '.join(ITEM_ROLES)}")
            kinds = ("output_text", "refusal") if role == "assistant" else ("input_text", "text")
            text, files = read_content(f"{field}.content", item.get("content"), kinds, with_files=role == "user")
            entries.append(InputMessage(field, str(role), text, files=files))
        else:
            raise InvalidInput(
                field,
                f"items of the type {str(kind)[:60]!r} are not taken; send message, function_call or "
                "function_call_output",
            )
    return entries


def _text(field: str, item: dict[str, JsonValue], name: str) -> str:
    value = item.get(name)
    if not isinstance(value, str):
        raise InvalidInput(f"{field}.{name}", "it is missing, or no text")
    return value
