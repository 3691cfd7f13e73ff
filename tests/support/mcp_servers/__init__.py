"""MCP servers for tests: our faulty one, and real ones if `make mcp-servers` has installed them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from brainq.engine.tools.mcp.server import McpServer, McpTool

FOLDER = Path(sys.prefix) / "mcp-servers"
FAULTY = Path(__file__).with_name("faulty.py")
HOLDER = Path(__file__).with_name("holder.py")
PAYMENTS = Path(__file__).with_name("payments.py")
TASKS = Path(__file__).with_name("tasks.py")


def faulty(folder: Path, name: str = "faulty", *, tools: dict[str, McpTool] | None = None) -> McpServer:
    """Return the faulty server. Its acts are recorded in `folder`."""
    command = [sys.executable, "-S", "-E", str(FAULTY), str(folder)]
    return McpServer(name, command, env={"FAULTY_TOKEN": "sk-very-secret-1"}, tools=tools or {}, timeout_s=20)


def payments(folder: Path | str, tools: dict[str, McpTool]) -> McpServer:
    """Return the payment server. Its ledger is in `folder`."""
    return McpServer("payments", [sys.executable, str(PAYMENTS), str(folder)], tools=tools)


def laboratory(folder: Path, *, tools: dict[str, McpTool] | None = None) -> McpServer:
    """Return the server whose tools run as tasks, over stdio. Its requests are recorded in `folder`."""
    return McpServer("lab", [sys.executable, str(TASKS), str(folder)], tools=tools or {})


def noted(folder: Path, name: str) -> list[str]:
    """Return the lines that the faulty server recorded under this name."""
    file = folder / name
    return file.read_text().splitlines() if file.exists() else []


def why_not() -> str | None:
    """Return why the real servers cannot be used here, or None if they can."""
    if shutil.which("node") is None:
        return "the real MCP servers need Node 20 or newer, and there is no `node`"
    if not (FOLDER / ".ready").is_file():
        return "the real MCP servers are not installed; install them with: make mcp-servers"
    return None


def npm(name: str) -> str:
    return str(FOLDER / "node_modules" / ".bin" / name)


def pypi(name: str) -> str:
    return str(FOLDER / "python" / "bin" / name)
