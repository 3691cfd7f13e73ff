"""Tools that the client runs: what the model sees of them, and how their calls are parked."""

from __future__ import annotations

import json
from collections.abc import Mapping

from brainq.contracts.claim import ClientCall
from brainq.contracts.status import Effect
from brainq.contracts.tool import ClientTool, ToolSpec
from brainq.contracts.turn import TurnRequest
from brainq.engine.brain.brain import Brain
from brainq.engine.gates.chain import Allowed
from brainq.engine.gates.schema_check import MAX_SUBSCHEMAS, PatternSizes, schema_size
from brainq.engine.tools.schema import check_tool_schema
from brainq.errors import InvalidInput, ToolSchemaError


def check_client_tools(brain: Brain, request: TurnRequest) -> None:
    """Raise InvalidInput if a client's tool has the name of a tool of the brain, or an invalid schema."""
    if (size := sum(schema_size(tool.parameters) for tool in request.client_tools)) > MAX_SUBSCHEMAS:
        raise InvalidInput(
            "client_tools",
            f"their schemas have {size:,} parts together; at most {MAX_SUBSCHEMAS:,} are checked, so send fewer tools, "
            "or simpler ones",
        )
    sizes = PatternSizes()
    for tool in request.client_tools:
        if tool.name in brain.tools:
            raise InvalidInput(
                "client_tools",
                f"the brain {brain.name!r} has a tool named {tool.name!r} of its own; give yours another name",
            )
        try:
            check_tool_schema(tool.name, tool.parameters, sizes)
        except ToolSchemaError as failure:
            raise InvalidInput("client_tools", str(failure)) from None


def client_specs(brain: Brain, request: TurnRequest) -> tuple[ToolSpec, ...]:
    """Return the specs of the client's tools. Their effects are unknown, so they count as writes. If the brain has
    gained a tool of the same name since the submit, the brain's tool is used."""
    return tuple(_spec(tool) for tool in request.client_tools if tool.name not in brain.tools)


def turn_specs(brain: Brain, request: TurnRequest) -> Mapping[str, ToolSpec]:
    if not request.client_tools:
        return brain.tools.specs
    return {**brain.tools.specs, **{spec.name: spec for spec in client_specs(brain, request)}}


def client_call(verdict: Allowed) -> ClientCall:
    """Return the arguments that the client reads and how long its call waits."""
    # The JSON is ASCII, because a hook may have put half of a surrogate pair into the arguments.
    arguments = json.dumps(verdict.arguments, separators=(",", ":"))
    return ClientCall(arguments_json=arguments, timeout_s=verdict.spec.timeout_s)


def _spec(tool: ClientTool) -> ToolSpec:
    return ToolSpec(
        name=tool.name,
        description=tool.description,
        parameters=tool.parameters,
        effect=Effect.NETWORK,
        timeout_s=tool.timeout_s,
    )
