"""The results of the opening wave: memory, and the context pack with the preferences found in memory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import ValidationError

from brainq.contracts.memory import RetrievedMemory
from brainq.runtime.text.surrogates import clean

Pack = dict[str, Any]
PREFERENCES = "preferences"
MEMORY_TOOL = "retrieve_for_context"  # the call's name in the trace; no model sees it
NO_MEMORY = RetrievedMemory()


def read_pack(text: str) -> Pack:
    """Return the pack in a tool's result: its JSON object. Any other text becomes `{"text": ...}`, and a blank one
    {}."""
    if not text.strip():
        return {}
    try:
        found: Any = json.loads(text, parse_constant=str)
        if isinstance(found, dict):
            pack_json(cast("Pack", found))  # a value that can be read but not written, such as 1e999, becomes text, too
            return cast("Pack", found)
    except (ValueError, RecursionError):
        pass
    return {"text": text}


def merge_preferences(pack: Pack, memory: RetrievedMemory) -> Pack:
    """Return a new pack with the preferences and habits found in memory after its own `preferences`.

    The order is kept. Of strings that differ only in case and spacing the first one is kept, and entries that are not
    strings are unchanged. Preferences that are not a list become its one entry.
    """
    merged = dict(pack)
    own = merged.get(PREFERENCES)
    entries = _entries(own)
    found = [text.strip() for text in (*memory.preferences, *memory.habits) if text.strip()]
    if entries or found or isinstance(own, list | tuple):
        merged[PREFERENCES] = _without_repeats([*entries, *found])
    return merged


def pack_json(pack: Mapping[str, Any]) -> str:
    """Return the canonical text of a pack: sorted keys, no spaces, valid UTF-8.

    Raises ValueError for a value without a JSON form.
    """
    try:
        text = json.dumps(dict(pack), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"the context pack has no JSON form: {error}") from error
    return clean(text)


def _entries(preferences: Any) -> list[Any]:
    if preferences is None:
        return []
    return list(preferences) if isinstance(preferences, list | tuple) else [preferences]


def _without_repeats(entries: Sequence[Any]) -> list[Any]:
    kept: list[Any] = []
    seen: set[str] = set()
    for entry in entries:
        if isinstance(entry, str):
            key = " ".join(entry.casefold().split())
            if key in seen:
                continue
            seen.add(key)
        kept.append(entry)
    return kept


def opening_memory(opening: Mapping[str, str]) -> RetrievedMemory:
    """Return the result of memory, or an empty one if it failed or was late."""
    found = opening.get(MEMORY_TOOL)
    if found is None:
        return NO_MEMORY
    try:
        return RetrievedMemory.from_stored(found)
    except ValidationError:
        return RetrievedMemory(text=found)


def opening_pack(opening: Mapping[str, str]) -> str | None:
    """Return the context pack as JSON, merged with memory's preferences and habits, or None if there is neither."""
    memory = opening_memory(opening)
    packs = [text for tool, text in opening.items() if tool != MEMORY_TOOL]
    if not packs and not memory.preferences and not memory.habits:
        return None
    return pack_json(merge_preferences(read_pack(packs[0]) if packs else {}, memory))


def context_hash(opening: Mapping[str, str]) -> str:
    """Return a hash of the memory and the pack behind a turn's answer, 16 hex digits, or "" if there was neither."""
    memory, pack = opening_memory(opening).text.strip(), opening_pack(opening)
    if not memory and not pack:
        return ""
    return hashlib.sha256(f"{memory}\0{pack or ''}".encode("utf-8", "replace")).hexdigest()[:16]
