"""Which tools a caller has, and how each is described. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any

from mcp_types import Tool, ToolAnnotations

from brainq.access import Caller, Verb
from brainq.brain import Brain
from brainq.contracts.effect import Effect
from brainq.http.mcp.brain_tool import AskInput
from brainq.http.mcp.told import TurnTold, schema_of_told
from brainq.http.mcp.turn_tools import TURN_TOOLS, TurnTool
from brainq.http.verbs import CONFIGURES

MAX_CHARS = 64
NEEDED_TO_ASK = frozenset({Verb.SUBMIT, Verb.READ})


def brains_by_tool(brains: Iterable[Brain]) -> dict[str, Brain]:
    """The brains by their tools' names: letters, digits, _ and -, 64 at most, and none twice."""
    found: dict[str, Brain] = {}
    for brain in brains:
        name = re.sub(r"[^A-Za-z0-9_-]", "_", brain.name)
        if name in TURN_TOOLS:
            name = f"ask_{name}"
        if len(name) > MAX_CHARS or name in found:
            digest = hashlib.sha256(brain.name.encode()).hexdigest()[:8]
            name = f"{name[: MAX_CHARS - len(digest) - 1]}_{digest}"
        found[name] = brain
    return found


def tools_for(caller: Caller, brains: dict[str, Brain]) -> list[Tool]:
    """The tools whose verbs the caller has: those of the brains first."""
    world = _world(brains.values())
    asks = [_brain_tool(name, brain) for name, brain in brains.items()]
    verbs = [_turn_tool(tool, caller, world) for tool in TURN_TOOLS.values() if tool.needs <= caller.verbs]
    return [*(asks if caller.verbs >= NEEDED_TO_ASK else ()), *verbs]


def _brain_tool(name: str, brain: Brain) -> Tool:
    destructive, open_world = _world([brain])
    return Tool(
        name=name,
        description=brain.description or f"Ask the agent {brain.name}.",
        input_schema=_schema(AskInput),
        output_schema=schema_of_told(brain.output_schema),
        annotations=ToolAnnotations(
            read_only_hint=False,
            destructive_hint=destructive,
            idempotent_hint=False,
            open_world_hint=open_world,
        ),
    )


def _turn_tool(tool: TurnTool, caller: Caller, world: tuple[bool, bool]) -> Tool:
    schema = _schema(tool.input)
    if Verb.CONFIGURE not in caller.verbs:
        for option in CONFIGURES & set(schema["properties"]):
            del schema["properties"][option]
    acts = tool.effect == "acts"
    return Tool(
        name=tool.name,
        description=tool.description,
        input_schema=schema,
        output_schema=schema_of_told(None)
        if tool.output is TurnTold
        else tool.output.model_json_schema(mode="serialization"),
        annotations=ToolAnnotations(
            read_only_hint=tool.effect == "looks",
            destructive_hint=tool.effect == "ends" or (acts and world[0]),
            idempotent_hint=tool.is_idempotent or tool.effect == "looks",
            open_world_hint=acts and world[1],
        ),
    )


def _schema(model: Any) -> dict[str, Any]:
    return model.model_json_schema()


def _world(brains: Iterable[Brain]) -> tuple[bool, bool]:
    """Whether the brains' tools may destroy something, and whether they reach what is not ours: what is read, by
    whatever way, may be anything."""
    effects = {spec.effect for brain in brains for spec in brain.tools.specs.values()}
    return Effect.DESTRUCTIVE in effects, bool(effects - {Effect.LOCAL_WRITE})
