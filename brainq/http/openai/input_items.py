"""The input items of a response as messages of a conversation. Pure."""

from __future__ import annotations

from typing import Any, cast

from pydantic import JsonValue

from brainq.errors import InvalidInput
from brainq.http.openai.conversation import Entry, content_of

ROLES = ("user", "assistant", "system", "developer")
_SKIPPED = ("reasoning",)
"""Items that other services gave, and that say nothing here."""


def entries_of(given: str | list[dict[str, JsonValue]]) -> list[Entry]:
    """Raises InvalidInput naming the item. Calls that stand one behind another are of one reply."""
    if isinstance(given, str):
        return [Entry("input", "user", given)]
    entries: list[Entry] = []
    for at, item in enumerate(given):
        field, kind = f"input[{at}]", item.get("type", "message")
        if kind in _SKIPPED:
            continue
        if kind == "function_call":
            call = tuple(_text(field, item, name) for name in ("call_id", "name", "arguments"))
            last = entries[-1] if entries else None
            if last is not None and last.role == "assistant":
                entries[-1] = Entry(last.field, "assistant", last.text, (*last.calls, cast("Any", call)))
            else:
                entries.append(Entry(field, "assistant", calls=(cast("Any", call),)))
        elif kind == "function_call_output":
            kinds = ("input_text", "text")
            output, sent = content_of(f"{field}.output", item.get("output"), kinds, with_files=True)
            entries.append(Entry(field, "tool", output, call_id=_text(field, item, "call_id"), files=sent))
        elif kind == "message":
            role = item.get("role")
            if role not in ROLES:
                raise InvalidInput(f"{field}.role", f"it is none of {', '.join(ROLES)}")
            kinds = ("output_text", "refusal") if role == "assistant" else ("input_text", "text")
            text, files = content_of(
                f"{field}.content", item.get("content"), kinds, with_files=role == "user"
            )
            entries.append(Entry(field, str(role), text, files=files))
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
