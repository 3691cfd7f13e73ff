"""Holding a server's results to the output schemas that it gave itself, in bounded time."""

from __future__ import annotations

from mcp_types import CallToolResult

from brainq.gates.schema_validator import SchemaValidator
from brainq.gates.usable_schema import LostReference, problem_of
from brainq.gates.validation import explained
from brainq.tools.mcp.pinned import PinnedServer


class ResultCheck:
    """Stands in for the SDK's own check, which matches a server's patterns against its results however long that
    takes, and meanwhile nothing else in the process goes on."""

    def __init__(self, listed: PinnedServer) -> None:
        self._schemas = {tool.name: tool.output_schema for tool in listed.tools if tool.output_schema}
        self._validators: dict[str, SchemaValidator] = {}

    async def __call__(self, name: str, result: CallToolResult) -> None:
        """Raises RuntimeError, as the SDK's does, for a result that does not fit, or a schema that nothing can be held
        to."""
        schema = self._schemas.get(name)
        if schema is None:
            return
        if "structured_content" not in result.model_fields_set:
            raise RuntimeError(f"the tool {name} has an output schema, and returned no structured content")
        if (validator := self._validators.get(name)) is None:
            try:
                problem = problem_of(schema)
            except LostReference as reference:
                problem = f"it refers to {reference}, which is not in it"
            if problem:
                raise RuntimeError(f"the output schema of the tool {name} is none: {problem}")
            validator = self._validators[name] = SchemaValidator(schema)
        if errors := validator.errors(result.structured_content):
            raise RuntimeError(f"the tool {name} returned what does not fit its schema: {explained(errors)}")
