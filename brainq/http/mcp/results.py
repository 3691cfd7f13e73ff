"""What a tool returns: structured content, the same as text for clients that read only that, links to files; and
refusals."""

from __future__ import annotations

import json

from mcp_types import CallToolResult, ContentBlock, ResourceLink, TextContent
from pydantic import BaseModel

from brainq.errors import BrainqError
from brainq.http.mcp.asked import Asked
from brainq.http.mcp.told import TurnTold
from brainq.http.problems import Refused, problem_of

PROBLEM = "brainq/problem"
KNOWS_LINKS = "2025-06-18"
"""The first version of the protocol that has links among what a tool returns."""


def result_of(asked: Asked, answer: BaseModel) -> CallToolResult:
    links: list[ContentBlock] = []
    if isinstance(answer, TurnTold) and asked.context.protocol_version >= KNOWS_LINKS:
        links += [
            ResourceLink(name=file.name, uri=file.uri, mime_type=file.media_type, size=file.size)
            for file in answer.files
        ]
    structured = answer.brief() if isinstance(answer, TurnTold) else answer.model_dump(mode="json")
    return CallToolResult(
        content=[TextContent(text=json.dumps(structured, ensure_ascii=False)), *links],
        structured_content=structured,
        is_error=isinstance(answer, TurnTold) and answer.is_failure,
    )


def refusal_of(error: BrainqError | Refused) -> CallToolResult:
    """A refusal that the model reads, and may do better by; programs find the problem in `_meta`."""
    problem = problem_of(error)
    return CallToolResult(
        content=[TextContent(text=f"{problem.title}: {problem.detail}")],
        is_error=True,
        _meta={PROBLEM: problem.model_dump(exclude_none=True)},
    )
