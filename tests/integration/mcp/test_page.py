"""docs/wires/mcp.md: its code loads, and its tools have the effects that the page says."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from brainq import Brain, Effect
from brainq.engine.tools.mcp.catalogue import ListedTool, pinned_server, write_catalogue
from brainq.engine.tools.mcp.tools import pinning_mode
from brainq.errors import SetupError

PAGE = Path(__file__).parents[3] / "docs" / "wires" / "mcp.md"


def test_the_brain_of_the_page_has_the_tools_that_were_pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, *_ = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    [servers] = re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "app.py").write_text(code)
    (tmp_path / "mcp.json").write_text(servers)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMORY_FILE", "/data/memory.jsonl")
    with pytest.raises(SetupError, match="brainq mcp pin"):
        runpy.run_path("app.py")
    with pinning_mode():
        named = {server.name: server for server in runpy.run_path("app.py")["brain"].mcp}
    assert named["memory"].env == {"MEMORY_FILE_PATH": "/data/memory.jsonl"}
    offered = {
        "git": [("git_status", {"readOnlyHint": True}), ("git_commit", {}), ("git_reset", {})],
        "search": [("find", {"readOnlyHint": True}), ("index", {"destructiveHint": False})],
        "memory": [("add", {"destructiveHint": False, "openWorldHint": False})],
    }
    schema = {"type": "object", "properties": {}}
    pinned = {
        server: pinned_server(
            named[server],
            [ListedTool({"name": name, "inputSchema": schema, "annotations": hints}) for name, hints in tools],
        )
        for server, tools in offered.items()
    }
    write_catalogue("mcp.lock.json", pinned)
    brain = runpy.run_path("app.py")["brain"]
    assert isinstance(brain, Brain)
    assert {name: spec.effect for name, spec in brain.tools.specs.items()} == {
        "git__git_status": Effect.READ_ONLY,
        "git__git_commit": Effect.LOCAL_WRITE,
        "search__find": Effect.READ_ONLY,
        "search__index": Effect.NETWORK,
        "memory__add": Effect.LOCAL_WRITE,
    }
    assert brain.tools["git__git_commit"].approval == "Commits to the repository."
    assert brain.tools.specs["memory__add"].resources == ("mcp:memory",)
