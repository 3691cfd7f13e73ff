"""`brainq mcp pin`, `brainq mcp list` and what `brainq doctor` says of servers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from brainq.cli.doctor.setup import check_mcp
from brainq.engine.brain.brains import load_brains
from tests.integration.cli.conftest import brainq, settings
from tests.support.commands import Brainq
from tests.support.mcp_servers import FAULTY, noted

__all__ = ["brainq", "settings"]  # fixtures

APP = """
from brainq import Brain, McpServer, ScriptedProvider
from brainq.engine.models.scripted import says

brain = Brain("cli", ScriptedProvider([says("Done.")]), mcp=McpServer.from_file("mcp.json"))
"""


@pytest.fixture
def app(brainq: Brainq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of an app with the faulty server, which is not pinned yet."""
    name = f"mcp_app_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(APP)
    faulty = {
        "command": sys.executable,
        "args": ["-S", "-E", str(FAULTY), str(tmp_path)],
        "env": {"FAULTY_TOKEN": "sk-very-secret-1"},
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"faulty": faulty}}))
    monkeypatch.setenv("BRAINQ_APP", f"{name}:brain")
    return name


def fresh(app: str) -> None:
    """The next command imports the app anew, as a process of its own does."""
    sys.modules.pop(app, None)


def test_servers_are_pinned_listed_and_watched(brainq: Brainq, app: str, tmp_path: Path) -> None:
    refused = brainq("mcp", "list")
    assert refused.code != 0
    assert "brainq mcp pin" in refused.err
    fresh(app)
    pinned = brainq("mcp", "pin")
    assert pinned.code == 0, pinned.err
    assert "faulty: 17 tools pinned; new: echo, write" in pinned.err
    assert "not pinned: 'wrong'" in pinned.err
    assert "sk-very-secret-1" not in (tmp_path / "mcp.lock.json").read_text() + pinned.err + pinned.out
    starts = len(noted(tmp_path, "starts"))

    fresh(app)
    rows = {row["tool"]: row for row in json.loads(brainq("mcp", "list", "--json").out)}
    assert rows["faulty__echo"]["effect"] == "read_only"
    assert (rows["faulty__write"]["effect"], rows["faulty__write"]["lane"]) == ("local_write", "mcp:faulty")
    assert "faulty__write" in brainq("mcp", "list").out
    assert len(noted(tmp_path, "starts")) == starts == 1

    (tmp_path / "changed").touch()
    level, said = checked(brainq)
    assert level == "warn"
    assert "new: brand_new; changed: echo" in said
    assert "brainq mcp pin" in said

    fresh(app)
    again = json.loads(brainq("mcp", "pin", "--json").out)
    assert [(row["new"], row["changed"], row["gone"]) for row in again] == [(["brand_new"], ["echo"], [])]
    fresh(app)
    [now] = check_mcp(load_brains(f"{app}:brain").default)
    assert (now.level, now.said) == ("ok", "18 tools, as pinned")


def checked(brainq: Brainq) -> tuple[str, str]:
    [row] = [row for row in json.loads(brainq("doctor", "--json").out) if row["name"] == "mcp faulty"]
    return row["level"], f"{row['said']} {row['remedy']}"


def test_a_server_that_does_not_start_is_told_with_its_own_words(brainq: Brainq, app: str, tmp_path: Path) -> None:
    (tmp_path / "die-at-start").touch()
    ran = brainq("mcp", "pin")
    assert ran.code == 1
    assert "faulty: not pinned: The MCP server 'faulty' could not be opened" in ran.err
    assert "server output: no licence" in ran.err
    fresh(app)
    assert "the brains have no MCP server 'svn'; they have faulty" in brainq("mcp", "pin", "--server", "svn").err


def test_brains_that_share_a_server_share_what_is_pinned(brainq: Brainq, app: str, tmp_path: Path) -> None:
    code = (tmp_path / f"{app}.py").read_text()
    other = code.replace("brain = Brain", "other = Brain").replace('"cli"', '"other"')
    (tmp_path / f"{app}.py").write_text(f"{code}{other}\nbrains = [brain, other]\n")
    assert brainq("-A", f"{app}:brains", "mcp", "pin").code == 0
    assert len(noted(tmp_path, "starts")) == 1
    fresh(app)
    rows = json.loads(brainq("-A", f"{app}:brains", "mcp", "list", "--json").out)
    assert [row["brain"] for row in rows if row["tool"] == "faulty__echo"] == ["cli", "other"]
    elsewhere = other.replace('McpServer.from_file("mcp.json")', '[McpServer("faulty", ["another"])]')
    (tmp_path / f"{app}.py").write_text(f"{code}{elsewhere}\nbrains = [brain, other]\n")
    fresh(app)
    assert "different servers named 'faulty'" in brainq("-A", f"{app}:brains", "mcp", "pin").err


def test_pin_says_which_tools_are_called_otherwise_and_whose_schema_is_sent_in_other_words(
    brainq: Brainq, app: str, tmp_path: Path
) -> None:
    (tmp_path / "malformed").touch()
    [pinned] = json.loads(brainq("mcp", "pin", "--json").out)
    assert pinned["renamed"]["a.b"].startswith("faulty__a_b_")
    assert "a_b" not in pinned["renamed"]
    assert pinned["rewritten"] == {"untyped": "no type at the top", "a.b": "no properties"}
    fresh(app)
    told = brainq("mcp", "pin").err
    assert f"models see 'a.b' as {pinned['renamed']['a.b']}" in told
    assert "the schema of 'untyped' is changed for models: no type at the top" in told
    fresh(app)
    assert {"faulty__a_b", pinned["renamed"]["a.b"]} < set(load_brains(f"{app}:brain").default.tools)
