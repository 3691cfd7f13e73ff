"""From the result of a tools/call to what the tool's function returns. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brainq.tools.mcp.failures import Answered
from brainq.tools.mcp.result import files_of, read_result, text_of
from brainq.tools.mcp.secrets import Secrets
from brainq.tools.with_files import WithFiles


def answer_of(result: Mapping[str, Any], secrets: Secrets) -> Any:
    """`result` is the protocol's CallToolResult as JSON. Raises Answered where it says that the tool failed."""
    content = result.get("content") or ()
    if result.get("isError") is True:
        raise Answered(text_of(content) or "The tool failed, and did not say why.")
    value, files = secrets.hide_in(read_result(result)), files_of(content)
    return WithFiles(value, files) if files else value
