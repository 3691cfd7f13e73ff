"""What the opening wave brought: memory, and the context pack with the preferences found in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from pydantic import ValidationError

from brainq.contracts.memory import RetrievedMemory
from brainq.tools.pack import merge_preferences, pack_json, read_pack

MEMORY_TOOL = "retrieve_for_context"  # the call's name in the trace; no model sees it
NOTHING = RetrievedMemory()


def opened_memory(opening: Mapping[str, str]) -> RetrievedMemory:
    """What memory brought; nothing when it failed or was late."""
    found = opening.get(MEMORY_TOOL)
    if found is None:
        return NOTHING
    try:
        return RetrievedMemory.model_validate_json(found)
    except ValidationError:
        return RetrievedMemory(text=found)


def opened_pack(opening: Mapping[str, str]) -> str | None:
    """The context pack as JSON, merged with memory's preferences and habits; None when there is neither."""
    memory = opened_memory(opening)
    packs = [text for tool, text in opening.items() if tool != MEMORY_TOOL]
    if not packs and not memory.preferences and not memory.habits:
        return None
    return pack_json(merge_preferences(read_pack(packs[0]) if packs else {}, memory))


def context_hash(opening: Mapping[str, str]) -> str:
    """Of the memory and the pack that a turn's answer stood on, 16 hex digits; "" where there was neither."""
    memory, pack = opened_memory(opening).text.strip(), opened_pack(opening)
    if not memory and not pack:
        return ""
    return hashlib.sha256(f"{memory}\0{pack or ''}".encode("utf-8", "replace")).hexdigest()[:16]
