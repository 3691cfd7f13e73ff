"""The messages of a request. They become a new turn, which is submitted, or results for a turn that waits for them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pydantic import JsonValue

from brainq.app.access import Caller, Verb, own_request_key
from brainq.client.async_handle import AsyncTurnHandle
from brainq.client.options import SubmitOptions
from brainq.contracts.conversation import newest_within_limits
from brainq.contracts.file import File
from brainq.contracts.ids import (
    check_id,
    check_turn_id,
    full_call_id,
    is_unnamed_session,
    split_call_id,
    unnamed_session,
)
from brainq.contracts.message import Message, ToolCall
from brainq.engine.tools.results import WithFiles
from brainq.errors import InvalidInput, NotFound, ResultRefused, SubmitConflict
from brainq.gateway.edge.request import GatewayRequest
from brainq.gateway.wires.chat.requests import (
    bound_waits,
    cancel_abandoned_calls,
    decode_openai_file,
    embed_files,
    require_no_client_wait,
)
from brainq.gateway.wires.openai.part_reader import PartSelector, fold_so_far, select_part

ITEM_ROLES = ("user", "assistant", "system", "developer")
_SKIPPED_ITEMS = ("reasoning",)
"""The types of items that other services produce and that have no meaning here."""


@dataclass(frozen=True, slots=True)
class InputMessage:
    """A message in a form common to both wires. `field` is its place in the request.

    calls     the assistant's calls: (id, name, arguments as text)
    call_id   the call that a result is for
    files     the files of a user's message or of a result
    """

    field: str
    role: str
    text: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    call_id: str = ""
    files: tuple[File, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnInput:
    """A new turn: the user's last message, the conversation before it, and the developer's instructions.

    files     the files of the last message
    brought   the files that the history refers to, by sha256
    """

    text: str
    history: tuple[Message, ...]
    instructions: str
    files: tuple[File, ...] = ()
    brought: Mapping[str, File] = field(default_factory=dict[str, File])


@dataclass(frozen=True, slots=True)
class ToolResults:
    """Results for calls of a turn that waits for them, and what the user adds in `text` and `files`.

    results   (id of the call in the turn, text, files)
    field     the place in the request
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
    """Read a request's last messages as a new turn or as results. Raises InvalidInput that names the message."""
    instructions = "\n\n".join(
        entry.text for entry in entries if entry.role in ("system", "developer") and entry.text.strip()
    )
    messages = [entry for entry in entries if entry.role not in ("system", "developer")]
    if not messages:
        raise InvalidInput(field, "there is no message from a user; send one with the role user")
    last = messages[-1]
    if last.role == "tool":
        return _read_results(messages)
    if messages[0].role == "tool" and all(entry.role != "assistant" for entry in messages):
        # These are results for an answer that the request names elsewhere, followed by the user's message.
        at = next(i for i, entry in enumerate(messages) if entry.role != "tool")
        if all(entry.role == "user" for entry in messages[at:]):
            return replace(_read_results(messages[:at]), text=_join_texts(messages[at:]), files=_files(messages[at:]))
    if last.role != "user":
        raise InvalidInput(
            last.field, "the last message is the assistant's, so there is nothing to answer; end with a user's message"
        )
    begin = next((i + 1 for i in range(len(messages) - 1, -1, -1) if messages[i].role != "user"), 0)
    text, files = _join_texts(messages[begin:]), _files(messages[begin:])
    if not text and not files:
        raise InvalidInput(last.field, "it is empty; send a text or a file")
    brought = {file.attachment.sha256: file for file in _files(messages[:begin])}
    return TurnInput(text, tuple(_history(messages[:begin])), instructions, files, brought)


def read_content(
    field: str, content: object, kinds: Sequence[str], *, with_files: bool
) -> tuple[str, tuple[File, ...]]:
    """Return the text and the files of a message's content. Raises InvalidInput that names the part."""
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
            raise InvalidInput(where, f"parts of the type {kind!r} are not supported; send {', '.join(kinds)}")
        text = found.get("refusal" if kind == "refusal" else "text")
        if not isinstance(text, str):
            raise InvalidInput(where, "its text is missing")
        texts.append(text)
    return "".join(texts), tuple(files)


def _read_results(messages: Sequence[InputMessage]) -> ToolResults:
    """Read the results at the end of the messages, which must be for calls of one turn."""
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
                f"{entry.call_id[:80]!r} is not the id of a call that brainq requested; send results for the ids in "
                "the answer, or a user's message after them",
            ) from None
        turns.add(turn_id)
        results[call] = (entry.text, entry.files)
    if len(turns) > 1:
        raise InvalidInput(messages[-1].field, "the results are for calls of several answers; send results for one")
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
    """Return the messages, with the results after each reply in the order of its calls."""
    history: list[Message] = []
    at = 0
    while at < len(messages):
        entry = messages[at]
        at += 1
        if entry.role == "tool":
            raise InvalidInput(entry.field, f"no message before it made the call {entry.call_id[:80]!r}")
        if not entry.text.strip() and not entry.calls and not entry.files:
            continue  # some services produce empty messages
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
                raise InvalidInput(entry.field, f"its call {call.id[:80]!r} has no result after it")
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


def read_items(given: str | list[dict[str, JsonValue]]) -> list[InputMessage]:
    """Read the items of a request and join consecutive calls into one reply. Raises InvalidInput naming the item."""
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
                f"items of the type {str(kind)[:60]!r} are not supported; send message, function_call or "
                "function_call_output",
            )
    return entries


def _text(field: str, item: dict[str, JsonValue], name: str) -> str:
    value = item.get(name)
    if not isinstance(value, str):
        raise InvalidInput(f"{field}.{name}", "it is missing or not a text")
    return value


async def submit_request(
    request: GatewayRequest,
    question: TurnInput,
    session_id: str | None,
    key: str,
    options: SubmitOptions,
    turn_id: str | None = None,
) -> AsyncTurnHandle:
    """Submit a question. Without `session_id` it begins a new session with one of the caller's prefixes.

    turn_id   the id for a new turn
    """
    request.require_verb(Verb.READ)
    session = session_id or _unnamed_session(request.caller, key)
    request.require_own_prefix(check_id("session", session))
    await require_no_client_wait(request, session)
    if is_unnamed_session(session):
        # Many clients read the arguments of a call but never send a result or use the session again.
        bound_waits(options, request.gateway.settings.http_client_tools_s)
    options["request_key"] = own_request_key(request.caller, session, key)
    if question.instructions:
        options["skill_context"] = question.instructions
    # `limits` and `options` were already narrowed for callers that may not configure turns.
    request.require_options(name for name in options if name not in ("limits", "options"))
    if turn_id is not None:
        options["turn_id"] = turn_id
    if question.files:
        options["attachments"] = question.files
    brings: SubmitOptions = {**options}
    if question.history:
        brings["history"] = embed_files(newest_within_limits(question.history), question.brought)
    if session_id is None or not question.history:
        handle = await request.client.submit(session, question.text, **brings)
    else:
        handle = await _submit_to_known_session(request, session, question.text, options, brings)
    if session_id is not None and handle.created:
        await cancel_abandoned_calls(request, session, handle.turn_id)
    return handle


async def give_results(request: GatewayRequest, given: ToolResults) -> tuple[AsyncTurnHandle, PartSelector]:
    """Give results to their turn and return it. Idempotent.

    Raises InvalidInput if a call that was requested with them has no result, because the turn would wait for it.
    """
    request.require_verb(Verb.READ)
    request.require_verb(Verb.STEER)
    handle = await request.own_turn(given.turn_id)
    fold, _ = await fold_so_far(handle)
    waiting, calls = {call.id for call in fold.waiting}, {full_call_id(given.turn_id, call) for call in given.calls}
    if missing := sorted(waiting - calls):
        raise InvalidInput(given.field, f"the call {missing[0]!r} has no result; send one for each call")
    if (given.text or given.files) and waiting:
        request.require_verb(Verb.SUBMIT)  # input that arrives as the turn ends becomes a turn of its own
        hashes = [file.attachment.sha256 for file in given.files]
        content = f"{given.turn_id} {sorted(given.calls)} {given.text}{hashes or ''}"
        digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
        # The input comes before the results, because the turn resumes with the last of them.
        await handle.steer(given.text, client_message_id=f"oa-{digest[:40]}", attachments=given.files)
    for call, text, files in given.results:
        try:
            await handle.give_result(call, WithFiles(text, files) if files else text)
        except ResultRefused as refusal:
            if not refusal.was_given:
                raise InvalidInput("messages", str(refusal)) from None
        except NotFound:
            if await handle.snapshot() is not None:
                raise
    return handle, await select_part(request.gateway, handle, after_calls=frozenset(calls))


async def _submit_to_known_session(
    request: GatewayRequest, session: str, text: str, options: SubmitOptions, brings: SubmitOptions
) -> AsyncTurnHandle:
    """Submit only the new text to a session that has turns, or text and history if the first try sent both.

    The first try has to be repeated exactly, because the same key with other content is refused.
    """
    if not await request.client.session(session).history(limit=1):
        return await request.client.submit(session, text, **brings)
    try:
        return await request.client.submit(session, text, **options)
    except SubmitConflict:
        return await request.client.submit(session, text, **brings)


def _unnamed_session(caller: Caller, key: str) -> str:
    prefix = "" if caller.prefixes is None else caller.prefixes[0]
    return unnamed_session(prefix, hashlib.sha256(f"{prefix} {key}".encode()).hexdigest())
