"""From the messages of a request to what a turn is submitted with, or to results of calls that wait. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from brainq.contracts.file import File
from brainq.contracts.ids import check_turn_id, split_call_id
from brainq.contracts.message import Message, ToolCall
from brainq.errors import InvalidInput
from brainq.http.sent_files import openai_file


@dataclass(frozen=True, slots=True)
class Entry:
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
class Question:
    """A new turn: what the user said last, what was said before, and what the developer said of both.

    files     beside the text
    brought   the files that the history refers to, by their sha256
    """

    text: str
    history: tuple[Message, ...]
    instructions: str
    files: tuple[File, ...] = ()
    brought: Mapping[str, File] = field(default_factory=dict[str, File])


@dataclass(frozen=True, slots=True)
class Results:
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


def read_conversation(field: str, entries: Sequence[Entry]) -> Question | Results:
    """What a request says, by its last messages. Raises InvalidInput naming the message."""
    instructions = "\n\n".join(
        entry.text for entry in entries if entry.role in ("system", "developer") and entry.text.strip()
    )
    said = [entry for entry in entries if entry.role not in ("system", "developer")]
    if not said:
        raise InvalidInput(field, "it says nothing of a user's; send a message of the role user")
    last = said[-1]
    if last.role == "tool":
        return _results(said)
    if said[0].role == "tool" and all(entry.role != "assistant" for entry in said):
        # Results for an answer that is named apart, and what the user says to them.
        at = next(i for i, entry in enumerate(said) if entry.role != "tool")
        if all(entry.role == "user" for entry in said[at:]):
            return replace(_results(said[:at]), text=_joined(said[at:]), files=_files(said[at:]))
    if last.role != "user":
        raise InvalidInput(
            last.field, "the last message is the assistant's, and nothing is left to answer; send the user's"
        )
    begin = next((i + 1 for i in range(len(said) - 1, -1, -1) if said[i].role != "user"), 0)
    text, files = _joined(said[begin:]), _files(said[begin:])
    if not text and not files:
        raise InvalidInput(last.field, "it is empty; say something")
    brought = {file.attachment.sha256: file for file in _files(said[:begin])}
    return Question(text, tuple(_history(said[:begin])), instructions, files, brought)


def content_of(
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
        file = openai_file(where, found) if with_files else None
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


def _results(said: Sequence[Entry]) -> Results:
    """The results that stand last, for calls of one turn of ours."""
    begin = next((i + 1 for i in range(len(said) - 1, -1, -1) if said[i].role != "tool"), 0)
    turns: set[str] = set()
    results: dict[str, tuple[str, tuple[File, ...]]] = {}
    for entry in said[begin:]:
        try:
            turn_id, call = split_call_id(entry.call_id)
            check_turn_id(entry.field, turn_id)
        except InvalidInput:
            raise InvalidInput(
                entry.field,
                f"{entry.call_id[:80]!r} is no call that was made here; send results for the ids that were given, or a "
                "message of the user behind them",
            ) from None
        turns.add(turn_id)
        results[call] = (entry.text, entry.files)
    if len(turns) > 1:
        raise InvalidInput(said[-1].field, "the results are for calls of several answers; send those of one")
    asked = said[begin - 1].calls if begin else ()
    given = {entry.call_id for entry in said[begin:]}
    if missing := [call for call, _, _ in asked if call not in given]:
        raise InvalidInput(said[-1].field, f"the call {missing[0]!r} has no result; send one for each call")
    found = tuple((call, text, files) for call, (text, files) in results.items())
    return Results(turns.pop(), found, said[-1].field)


def _joined(said: Sequence[Entry]) -> str:
    return "\n\n".join(entry.text for entry in said if entry.text.strip())


def _files(said: Sequence[Entry]) -> tuple[File, ...]:
    return tuple(file for entry in said for file in entry.files)


def _history(said: Sequence[Entry]) -> list[Message]:
    """The messages, the results of each reply in the order of its calls."""
    messages: list[Message] = []
    at = 0
    while at < len(said):
        entry = said[at]
        at += 1
        if entry.role == "tool":
            raise InvalidInput(entry.field, f"no message before it made the call {entry.call_id[:80]!r}")
        if not entry.text.strip() and not entry.calls and not entry.files:
            continue  # services leave such behind; there is nothing in it
        calls = tuple(ToolCall(id=i, name=name, arguments=_arguments(text)) for i, name, text in entry.calls)
        references = tuple(file.attachment for file in entry.files)
        messages.append(
            Message(role=_ROLES[entry.role], content=entry.text, calls=calls, attachments=references)
        )
        results: dict[str, Entry] = {}
        while at < len(said) and said[at].role == "tool":
            results.setdefault(said[at].call_id, said[at])
            at += 1
        for call in calls:
            found = results.pop(call.id, None)
            if found is None:
                raise InvalidInput(entry.field, f"its call {call.id[:80]!r} has no result behind it")
            shown = tuple(file.attachment for file in found.files)
            messages.append(
                Message(role="tool", content=found.text, call_id=call.id, name=call.name, attachments=shown)
            )
        if results:
            odd = next(iter(results.values()))
            raise InvalidInput(odd.field, f"no message before it made the call {odd.call_id[:80]!r}")
    return messages


_ROLES: Mapping[str, Any] = {"user": "user", "assistant": "assistant"}


def _arguments(text: str) -> dict[str, Any] | str:
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return text
    return cast("dict[str, Any]", found) if isinstance(found, dict) else text
