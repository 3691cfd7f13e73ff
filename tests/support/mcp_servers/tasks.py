"""A server whose tools run as tasks, made with the SDK: `python tasks.py FOLDER` over stdio, or in a thread over HTTP.

FOLDER keeps its requests: `calls`, `gets`, `results` and `cancelled`, one on each line. A task ends when a test calls
`end(folder, task, status, result)`. Over stdio the server knows only the tasks of its own process; over HTTP it knows
all tasks of FOLDER, like a server that keeps them in a database.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
from mcp import MCPError
from mcp.server import Server
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND, ListToolsResult, Tool, ToolAnnotations, ToolExecution

BEGAN = "2026-01-01T00:00:00Z"
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"topic": {"type": "string"}}, "required": ["topic"]}
WRITE = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
TOOLS = [
    Tool(
        name="research",
        description="Research, and file the report.",
        input_schema=SCHEMA,
        annotations=WRITE,
        execution=ToolExecution(task_support="required"),
    ),
    Tool(
        name="survey",
        description="Look around.",
        input_schema=SCHEMA,
        annotations=ToolAnnotations(read_only_hint=True),
        execution=ToolExecution(task_support="optional"),
    ),
    Tool(name="note", description="Note it.", input_schema=SCHEMA, annotations=WRITE),
]


def lines(folder: Path, name: str) -> list[str]:
    file = folder / name
    return file.read_text().splitlines() if file.exists() else []


def end(folder: Path, task: str, status: str, result: dict[str, Any] | None = None, message: str | None = None) -> None:
    """Set the state that the server reports for the task from now on. `busy` means that it does not report any."""
    beside = folder / f"{task}.new"
    beside.write_text(json.dumps({"status": status, "result": result, "message": message}))
    beside.rename(folder / f"{task}.json")


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}], **more}


class Tasks:
    """The requests about tasks that the SDK's server would refuse, because it has types of tasks, but does not run
    them."""

    def __init__(self, folder: Path, *, keeps_all: bool) -> None:
        self.folder = folder
        self.keeps_all = keeps_all
        self.own: set[str] = set()

    async def answer(self, context: Any, go_on: Any) -> Any:
        params: dict[str, Any] = dict(context.params or {})
        match context.method:
            case "server/discover":  # tasks are of the protocol before it
                raise MCPError(code=METHOD_NOT_FOUND, message="Method not found")
            case "initialize":
                said = dict(await go_on(context))
                tasks = {"cancel": {}, "requests": {"tools": {"call": {}}}}
                return {**said, "capabilities": {**said["capabilities"], "tasks": tasks}}
            case "tools/call":
                return self._call(params)
            case "tasks/get":
                self._note("gets", params["taskId"])
                return self._state(params["taskId"])
            case "tasks/result":
                self._note("results", params["taskId"])
                self._state(params["taskId"])
                result = self._said(params["taskId"])["result"]
                if result is None:
                    raise MCPError(code=1234, message="the archive is closed")
                return result
            case "tasks/cancel":
                self._note("cancelled", params["taskId"])
                return self._state(params["taskId"])
            case _:
                return await go_on(context)

    def _call(self, params: dict[str, Any]) -> dict[str, Any]:
        topic, asked = params["arguments"]["topic"], params.get("task")
        self._note("calls", json.dumps({"pid": os.getpid(), "tool": params["name"], "topic": topic, "task": asked}))
        if asked is None:
            if params["name"] == "research":
                raise MCPError(code=METHOD_NOT_FOUND, message="research needs a task")
            return text(f"saw {topic}")
        task = f"task-{len(lines(self.folder, 'calls'))}"
        self.own.add(task)
        end(self.folder, task, "working", message=f"reading about {topic}")
        return {"task": self._state(task)}

    def _said(self, task: str) -> dict[str, Any]:
        return json.loads((self.folder / f"{task}.json").read_text())

    def _state(self, task: str) -> dict[str, Any]:
        known = self.keeps_all or task in self.own
        if not known or not (self.folder / f"{task}.json").exists():
            raise MCPError(code=INVALID_PARAMS, message="Task not found")
        said = self._said(task)
        if said["status"] == "busy":
            raise MCPError(code=-31_000, message="slow down")
        state = {
            "taskId": task,
            "status": said["status"],
            "createdAt": BEGAN,
            "lastUpdatedAt": BEGAN,
            "ttl": None,
            "pollInterval": 100,
        }
        return state if said["message"] is None else {**state, "statusMessage": said["message"]}

    def _note(self, name: str, line: str) -> None:
        with (self.folder / name).open("a") as file:
            file.write(line + "\n")


def task_server(folder: Path, *, keeps_all: bool) -> Server[Any]:
    async def listed(_context: Any, _params: Any) -> ListToolsResult:
        return ListToolsResult(tools=TOOLS)

    server: Server[Any] = Server("tasks", on_list_tools=listed)
    answer: Any = Tasks(folder, keeps_all=keeps_all).answer
    server.middleware.append(answer)
    return server


async def main() -> None:
    server = task_server(Path(sys.argv[1]), keeps_all=False)
    async with stdio_server() as (incoming, outgoing):
        await serve_loop(server, incoming, outgoing, lifespan_state=None)


if __name__ == "__main__":
    anyio.run(main)
