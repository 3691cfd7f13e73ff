"""Large registries of real tools: the airline's own tools among those of MCP servers (tools.json)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from brainq.contracts.tool import ToolSpec
from examples.airline.package import declarations

COLLECTED = Path(__file__).with_name("tools.json")


def registries() -> dict[str, tuple[ToolSpec, ...]]:
    """Return name -> specs.

    `mixed` has the airline's tools among tools of other fields; `crowded` also has those of other travel services.

    The airline's tools are last, because tools with equal scores are chosen in registry order, which must not help
    them.
    """
    servers: list[dict[str, Any]] = json.loads(COLLECTED.read_text(encoding="utf-8"))["servers"]
    others = [ToolSpec(**tool) for server in servers if not server["travel"] for tool in server["tools"]]
    travel = [ToolSpec(**tool) for server in servers if server["travel"] for tool in server["tools"]]
    airline = [
        ToolSpec(name=name, description=description, parameters=schema)
        for name, (description, schema) in declarations().items()
    ]
    return {"mixed": (*others, *airline), "crowded": (*others, *travel, *airline)}
