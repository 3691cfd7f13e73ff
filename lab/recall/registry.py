"""Large registries of real tools: the airline's own, among those of MCP servers (tools.json)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from brainq.contracts.tool import ToolSpec
from examples.airline.package import declarations

COLLECTED = Path(__file__).with_name("tools.json")


def registries() -> dict[str, tuple[ToolSpec, ...]]:
    """name -> specs. `mixed`: the airline among tools of other fields; `crowded`: and of other travel services.

    The airline's tools stand last: tools with equal scores are taken in registry order, which must not help.
    """
    servers: list[dict[str, Any]] = json.loads(COLLECTED.read_text(encoding="utf-8"))["servers"]
    others = [ToolSpec(**tool) for server in servers if not server["travel"] for tool in server["tools"]]
    travel = [ToolSpec(**tool) for server in servers if server["travel"] for tool in server["tools"]]
    airline = [
        ToolSpec(name=name, description=description, parameters=schema)
        for name, (description, schema) in declarations().items()
    ]
    return {"mixed": (*others, *airline), "crowded": (*others, *travel, *airline)}
