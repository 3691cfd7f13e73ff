"""A faulty server, and its tools run as a worker runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from brainq.engine.calls.executor import TOOL_LOOP, BoundedToolExecutor
from brainq.engine.calls.function_run import CallReturn
from brainq.engine.tools.context import RunContext
from brainq.engine.tools.deadline import DeadlineToken
from brainq.engine.tools.mcp.catalogue import PinnedServer
from brainq.engine.tools.mcp.server import McpServer
from brainq.engine.tools.mcp.session import close_sessions, discover
from brainq.engine.tools.mcp.tools import tools_of_server
from brainq.engine.tools.tool import Tool
from tests.support.mcp_servers import faulty
from tests.unit.engine.calls.support import context_for, run_in

Call = Callable[..., CallReturn]


def looked(server: McpServer) -> PinnedServer:
    """What the server offers; fails if it does not start."""
    seen = discover([server])[server.name]
    assert seen.found is not None, f"{seen.problem} {seen.last_words}"
    return seen.found


@pytest.fixture(scope="session")
def faulty_pinned(tmp_path_factory: pytest.TempPathFactory) -> PinnedServer:
    return looked(faulty(tmp_path_factory.mktemp("pinned")))


@pytest.fixture
def executor() -> Iterator[BoundedToolExecutor]:
    executor = BoundedToolExecutor()
    yield executor
    close_sessions()
    executor.close()
    TOOL_LOOP.stop()


@pytest.fixture
def call(executor: BoundedToolExecutor, faulty_pinned: PinnedServer, tmp_path: Path) -> Call:
    """Calls a tool of the faulty server, by the server's name of it; notes go to `tmp_path`."""
    tools: dict[str, Tool] = {tool.name: tool for tool in tools_of_server(faulty(tmp_path), faulty_pinned)}

    def called(name: str, limit_s: float = 20.0, context: RunContext | None = None, **arguments: Any) -> CallReturn:
        context = context_for(DeadlineToken(limit_s)) if context is None else context
        return run_in(executor, tools[f"faulty__{name}"], context, arguments)

    return called
