"""`offline:rules`: a stand-in for a model, so that your own tools run without a key.

It has no language model. It calls the tools whose names occur in the user's message, fills their arguments from the
words after the name, and then reports the result of each call. It reports what it could not read, and how to write it:

    count apples                          count(item='apples')
    restock apples by 5, count apples     both, in this order
    restock(item="green pears", amount=5) a call in Python's syntax, used unchanged
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

from brainq.contracts.message import Message
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.contracts.tool import ToolSpec
from brainq.engine.models.scripted import ScriptedProvider, calls, says

NAME = "offline"
SELF_DESCRIPTION = (
    "I am offline:rules, a stand-in that finds tools by their names and understands nothing; "
    'a real model is one line in your app: Brain(..., model="openai:gpt-4.1-mini"), and its key.'
)

_WORD = re.compile(r"\"[^\"]*\"|'[^']*'|-?\d+(?:\.\d+)?|[^\W\d][\w-]*|[,.;:!?]")
_NUMBER_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_SMALL_NUMBERS = {word: number for number, word in enumerate(_NUMBER_WORDS)}
_STOPS = frozenset(",.;:!?")
_END_WORDS = _STOPS | {
    *("and", "as", "at", "because", "by", "for", "if", "in", "into", "on"),
    *("than", "that", "then", "to", "when", "while", "with"),
}
_FILLERS = frozenset({"a", "an", "all", "any", "more", "my", "of", "our", "please", "some", "the", "this", "your"})


@dataclass(frozen=True)
class ParsedCall:
    """A call that a message requests. `missing` has the names of required arguments that were not found."""

    tool: ToolSpec
    arguments: dict[str, Any]
    missing: tuple[str, ...] = ()

    def __str__(self) -> str:
        arguments = [f"{name}={value!r}" for name, value in self.arguments.items()]
        return f"{self.tool.name}({', '.join([*arguments, *(f'{name}=...' for name in self.missing)])})"


def offline_model() -> ScriptedProvider:
    return ScriptedProvider(rules=reply, name=NAME)


def reply(request: ModelRequest) -> ModelReply:
    """Return the next reply. The same request gets the same reply, so a step may be repeated."""
    own = [message for message in request.messages if message.turn == request.turn_id]
    texts = [_words_of_user(message) for message in own if message.role == "user"]
    found = [wanted for text in texts for wanted in read_message(text, request.tools)]
    whole = [wanted for wanted in found if not wanted.missing]
    results = [message for message in own if message.role == "tool"]
    if len(results) < len(whole):
        return calls(*((wanted.tool.name, wanted.arguments) for wanted in whole[len(results) :]))
    lines = [_describe_result(wanted, result) for wanted, result in zip(whole, results, strict=False)]
    lines += [
        f"{wanted.tool.name} needs {_describe_missing(wanted)}: write {wanted}" for wanted in found if wanted.missing
    ]
    if not found:
        lines = [f"I found none of your tools in that. They are: {_signatures(request.tools) or 'none'}."]
    return says("\n".join([*lines, f"({SELF_DESCRIPTION})"]))


def _words_of_user(message: Message) -> str:
    """Return the user's own words in a message, or "" for a note that the runtime made between two steps."""
    if message.extra is None:
        return message.content
    if "input" not in message.extra:
        return ""
    text, frame, rest = message.content.rpartition("\n\n[")  # input for a live turn ends with a note of the runtime
    return text if frame and rest.endswith("]") else message.content


def read_message(text: str, tools: tuple[ToolSpec, ...]) -> list[ParsedCall]:
    """Return the calls that a message requests, in the order of its words."""
    for tool in tools:
        if written := _python_call(text, tool):
            start, end, wanted = written
            return [*read_message(text[:start], tools), wanted, *read_message(text[end:], tools)]
    words = [match[0] for match in _WORD.finditer(text)]
    stems = [_stem(word) for word in words]
    starts = {index: tool for index, stem in enumerate(stems) if (tool := _tool_for_word(stem, stems, tools))}
    bounds = [*starts, len(words)]
    return [
        _fill_arguments(tool, words[index + 1 : end])
        for (index, tool), end in zip(starts.items(), bounds[1:], strict=True)
    ]


def _tool_for_word(stem: str, stems: list[str], tools: tuple[ToolSpec, ...]) -> ToolSpec | None:
    """Return the tool whose name begins with this word. Of several, choose the one with most other words in the
    message."""
    named = [(tool, [_stem(part) for part in tool.name.split("_") if part]) for tool in tools]
    fitting = [(tool, parts) for tool, parts in named if parts and (stem in (parts[0], _stem(tool.name)))]
    if not fitting:
        return None
    return max(fitting, key=lambda one: sum(part in stems for part in one[1]) / len(one[1]))[0]


def _fill_arguments(tool: ToolSpec, words: list[str]) -> ParsedCall:
    properties: dict[str, Any] = tool.parameters.get("properties", {})
    required: list[str] = tool.parameters.get("required", [])
    named = {_stem(part) for part in tool.name.split("_")} | {_stem(name) for name in properties}
    left = [word for word in words if _stem(word) not in named and word.lower() not in _FILLERS]
    # Values with the narrowest types are taken first; a text gets the rest.
    found = {name: _take_value(schema, left) for name, schema in sorted(properties.items(), key=_is_text)}
    arguments = {name: found[name] for name in properties if found[name] is not None}
    return ParsedCall(tool, arguments, tuple(name for name in required if name not in arguments))


def _is_text(named: tuple[str, dict[str, Any]]) -> bool:
    return named[1].get("type") == "string" and "enum" not in named[1]


def _take_value(schema: dict[str, Any], left: list[str]) -> Any:
    """Remove and return the first of the words that fits, or None if none does."""
    if "enum" in schema:
        known = {str(value).lower(): value for value in schema["enum"]}
        return next((known[_bare(left.pop(i)).lower()] for i, w in enumerate(left) if _bare(w).lower() in known), None)
    match schema.get("type"):
        case "integer" | "number":
            for index, word in enumerate(left):
                if (number := _number(word)) is not None:
                    left[index] = ","
                    return number if schema["type"] == "number" else int(number)
        case "string":
            return _take_text(left)
        case _:
            pass
    return None


def _take_text(left: list[str]) -> str | None:
    """Remove and return a quoted text, or else the words up to a number or a word that begins something else."""
    while left and left[0].lower() in _END_WORDS:
        del left[0]
    if left and left[0][0] in "\"'":
        return _bare(left.pop(0))
    taken = 0
    while taken < len(left) and left[taken].lower() not in _END_WORDS and _number(left[taken]) is None:
        taken += 1
    text = " ".join(left[:taken])
    del left[:taken]
    return text or None


def _number(word: str) -> float | None:
    if word[:1] in "-0123456789" and word != "-":
        return float(word)
    return _SMALL_NUMBERS.get(word.lower())


def _python_call(text: str, tool: ToolSpec) -> tuple[int, int, ParsedCall] | None:
    """Return the start and the end of `tool(...)` in the text, and the call that it writes."""
    for match in re.finditer(rf"\b{re.escape(tool.name)}\(", text):
        for end in (close.end() for close in re.finditer(r"\)", text[match.end() :])):
            stop = match.end() + end
            try:
                tree = ast.parse(text[match.start() : stop], mode="eval").body
                assert isinstance(tree, ast.Call)
                names = list(tool.parameters.get("properties", {}))
                arguments = dict(zip(names, map(ast.literal_eval, tree.args), strict=False))
                arguments |= {word.arg or "": ast.literal_eval(word.value) for word in tree.keywords}
            except (AssertionError, SyntaxError, ValueError):
                continue
            return match.start(), stop, ParsedCall(tool, arguments)
    return None


def _stem(word: str) -> str:
    return re.sub(r"(?<=\w{3})(ing|ed|es|s)$", "", word.lower())


def _bare(word: str) -> str:
    return word[1:-1] if word[0] in "\"'" and len(word) > 1 else word


def _describe_result(wanted: ParsedCall, result: Message) -> str:
    return f"{wanted} {'failed' if result.is_error else 'said'}: {result.content}"


def _describe_missing(wanted: ParsedCall) -> str:
    return " and ".join(f"{name} ({_parameter_type(wanted.tool, name)})" for name in wanted.missing)


def _parameter_type(tool: ToolSpec, name: str) -> str:
    schema: dict[str, Any] = tool.parameters.get("properties", {}).get(name, {})
    return str(schema.get("type", "a value"))


def _signatures(tools: tuple[ToolSpec, ...]) -> str:
    return ", ".join(f"{tool.name}({', '.join(tool.parameters.get('properties', {}))})" for tool in tools)
