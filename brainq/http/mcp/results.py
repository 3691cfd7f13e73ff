"""What a tool returns: structured content, and the same as text for clients that read only that; and refusals."""

from __future__ import annotations

import json

from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel

from brainq.errors import BrainqError
from brainq.http.mcp.told import TurnTold
from brainq.http.problems import Refused, problem_of

PROBLEM = "brainq/problem"


def result_of(answer: BaseModel) -> CallToolResult:
    structured = answer.brief() if isinstance(answer, TurnTold) else answer.model_dump(mode="json")
    return CallToolResult(
        content=[TextContent(text=json.dumps(structured, ensure_ascii=False))],
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
