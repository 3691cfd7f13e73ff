"""A real turn as a test: its model's replies, and its tools' results. Secrets are hidden."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pprint import pformat
from typing import Any, cast

from brainq.client.turn_facts import TurnFacts
from brainq.contracts.history import TurnCall
from brainq.contracts.message import Message
from brainq.contracts.people import Approval
from brainq.engine.memory.words import HIDDEN, hide_secrets, is_secret_name
from brainq.errors import InvalidInput

RAN = ("completed", "failed", "timed_out", "timed_out_late", "unknown")
"""The statuses of calls whose functions ran."""


def cassette(facts: TurnFacts, app: str) -> str:
    """Return a pytest file that plays the turn again.

    app: where the test imports the brain from, as `module:variable`.

    Raises InvalidInput if the turn has not ended, or if its content is not kept.
    """
    if facts.result is None:
        raise InvalidInput("turn", "has no result yet; write its cassette once it has ended")
    if not facts.messages:
        raise InvalidInput("turn", f"its messages are not kept: {facts.no_messages}")
    asked = next(message.content for message in facts.messages if message.role == "user")
    module, _, variable = app.partition(":")
    calls = [call for call in facts.calls if call.step > 0]
    parts = [
        *(["from brainq import ToolError, testing"] if _results(calls)[1] else ["from brainq import testing"]),
        f"from brainq.testing import {', '.join(_used(facts.messages))}",
        f"from {module} import {variable or 'brain'}",
        "",
        f"SCRIPT = [\n{_script(facts.messages)}]",
        f"RESULTS = {_results(calls)[0]}",
        "",
        "",
        f"def test_turn_{facts.row.turn_id[-6:]}() -> None:",
        f"    with testing.run({variable or 'brain'}, SCRIPT, results=RESULTS) as t:",
        f"        t.start({_text(asked)}{_options(facts)})",
        *(f"        {line}" for line in _decisions(facts.approvals)),
        "        result = t.result()",
        f"        assert (result.ending, result.text) == ({facts.result.ending.value!r}, {_text(facts.result.text)})",
        "        assert [(call.tool, call.status) for call in t.calls if call.step] == [",
        *(f"            ({call.tool!r}, {call.status.value!r})," for call in calls),
        "        ]",
    ]
    head = f'"""Turn {facts.row.turn_id}: what its model replied and its tools returned. Secrets are hidden."""'
    return "\n".join([head, "", *parts, ""])


def _script(messages: Iterable[Message]) -> str:
    replies = [message for message in messages if message.role == "assistant"]
    return "".join(f"    {_reply(message)},\n" for message in replies)


def _reply(message: Message) -> str:
    if not message.calls:
        return f"says({_text(message.content)})"
    wanted = ", ".join(f"({call.name!r}, {_value(call.arguments)})" for call in message.calls)
    return f"calls({wanted}, text={_text(message.content)})" if message.content else f"calls({wanted})"


def _used(messages: Iterable[Message]) -> list[str]:
    replies = [message for message in messages if message.role == "assistant"]
    return [
        name
        for name, used in (("calls", any(m.calls for m in replies)), ("says", any(not m.calls for m in replies)))
        if used
    ]


def _results(calls: Sequence[TurnCall]) -> tuple[str, bool]:
    """Return the code of the results, and whether one of them is an error. Reads of a wave may begin in any order, so
    each result has its call's id."""
    ran = [call for call in calls if call.status in RAN]
    lines = "".join(f"    {call.call_id!r}: [{_result(call)}],  # {call.tool}\n" for call in ran)
    return f"{{\n{lines}}}" if ran else "{}", any(call.status != "completed" for call in ran)


def _result(call: TurnCall) -> str:
    text = _text(call.result or "")
    return text if call.status == "completed" else f"ToolError({text})"


def _decisions(approvals: Iterable[Approval]) -> list[str]:
    """Return the lines that decide as people did. Calls of one step that got the same decision share a line."""
    lines = {
        approval.call_id.partition("-")[0]: "t.approve()" if approval.state == "approved" else "t.deny()"
        for approval in approvals
        if approval.state in ("approved", "denied")
    }
    return list(lines.values())


def _options(facts: TurnFacts) -> str:
    brain = facts.request.brain if facts.request else None
    return f", brain={brain!r}" if brain else ""


def _text(text: str) -> str:
    return repr(hide_secrets(text))


def _value(value: Any) -> str:
    return pformat(_hidden(value), width=10_000, sort_dicts=False)


def _hidden(value: Any) -> Any:
    if isinstance(value, str):
        return hide_secrets(value)
    if isinstance(value, list):
        return [_hidden(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        named = cast("dict[str, Any]", value)
        return {key: HIDDEN if is_secret_name(key) and item else _hidden(item) for key, item in named.items()}
    return value
