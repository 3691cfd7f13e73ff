"""The retriever as a tool, so that finding memory runs like any other read: bounded, beaten for, rescued."""

from __future__ import annotations

from typing import Any

from brainq.contracts.effect import Effect
from brainq.contracts.memory import MemoryRetriever, RetrievedMemory
from brainq.tools.context import RunContext
from brainq.tools.opening import MEMORY_TOOL
from brainq.tools.tool import Tool, make_tool


def memory_tool(retriever: MemoryRetriever) -> Tool:
    """A READ_ONLY tool named MEMORY_TOOL; no model sees it."""

    def retrieve(query: str, context: RunContext) -> dict[str, Any]:
        found: Any = retriever.retrieve_for_context(query, context.session_id)
        if not isinstance(found, RetrievedMemory):
            raise TypeError(
                f"retrieve_for_context of {type(retriever).__name__} returned a {type(found).__name__}; "
                "it must return a RetrievedMemory"
            )
        return found.model_dump(mode="json")

    return make_tool(
        retrieve, effect=Effect.READ_ONLY, name=MEMORY_TOOL, description="Find what is known of the user."
    )
