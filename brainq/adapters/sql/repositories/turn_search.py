"""Search turns by their ids, messages, answers, tags and metadata.

SQL searches the stored JSON as text and may find too much, so each turn that it finds is checked again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, or_

from brainq.adapters.sql.tables import turns
from brainq.contracts.history import metadata_pairs

_T = turns.c
_IN_REQUEST = ("user_message", "prompt_id", "prompt_version")


def may_contain(sought: str) -> ColumnElement[bool]:
    """Return the condition that a turn may contain this: it matches everything that `contains` does, and more.

    SQL searches the stored JSON as text, which also contains names of fields, prompts and tools. So each turn that it
    finds is checked again.
    """
    ids = [column.icontains(sought, autoescape=True) for column in (_T.turn_id, _T.session_id, _T.request_key)]
    name, equals, value = sought.partition("=")
    # The stored JSON has the parts of `order.id=7` separately. Any other text is stored as it is.
    pair = [_json_fragment(part) for part in (*name.split("."), value) if part] if equals else []
    parts = pair or [_json_fragment(sought)]
    in_content = [
        or_(_T.request_json.icontains(part, autoescape=True), _T.result_json.icontains(part, autoescape=True))
        for part in parts
    ]
    return or_(*ids, and_(*in_content)) if in_content else or_(*ids)


def contains(found: Mapping[str, Any], sought: str) -> bool:
    """Return whether a turn's ids, message, answer, tags or metadata (`key=value`) contain this, ignoring case.
    Pure."""
    wanted = sought.casefold()
    return any(wanted in text.casefold() for text in _searched_texts(found))


def may_have(metadata: Sequence[str], tags: Sequence[str]) -> list[ColumnElement[bool]]:
    """Return the condition that a request may have all of these pairs and tags: it matches more than `has_all`."""
    words = list(tags)
    for pair in metadata:
        name, _, value = pair.partition("=")
        words += [*name.split("."), value]
    return [_T.request_json.icontains(_json_fragment(word), autoescape=True) for word in words if word]


def has_all(found: Mapping[str, Any], metadata: Sequence[str], tags: Sequence[str]) -> bool:
    """Return whether a turn's request has exactly these pairs and tags among its own. Pure."""
    request: dict[str, Any] = json.loads(found["request_json"] or "{}")
    return set(tags) <= set(request.get("prompt_tags") or ()) and set(metadata) <= set(
        metadata_pairs(request.get("metadata"))
    )


def _searched_texts(found: Mapping[str, Any]) -> Iterator[str]:
    yield from (found["turn_id"], found["session_id"], found["request_key"])
    request: dict[str, Any] = json.loads(found["request_json"] or "{}")
    yield from (text for name in _IN_REQUEST if isinstance(text := request.get(name), str))
    yield from request.get("prompt_tags") or ()
    yield from metadata_pairs(request.get("metadata"))
    if found["result_json"] is not None:
        yield json.loads(found["result_json"]).get("text") or ""


def _json_fragment(text: str) -> str:
    """Return the text as it appears inside JSON."""
    return json.dumps(text, ensure_ascii=False)[1:-1]
