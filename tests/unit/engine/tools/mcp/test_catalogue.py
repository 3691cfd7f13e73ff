"""What is pinned, what becomes a tool of it, and what does not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from brainq import Brain, Effect
from brainq.engine.tools.mcp.catalogue import (
    Drift,
    ListedTool,
    PinnedServer,
    find_drift,
    pinned_server,
    read_catalogue,
    write_catalogue,
)
from brainq.engine.tools.mcp.server import McpServer, McpTool
from brainq.engine.tools.mcp.tools import pinning_mode, tools_of_server
from brainq.errors import InvalidInput, SetupError, ToolSchemaError

GIT = McpServer("git", ["no-such-program"], env={"GIT_TOKEN": "sk-very-secret"})


def tool(name: str, hints: dict[str, bool] | None = None, **more: Any) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": name,
        "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
    }
    return {**entry, **({} if hints is None else {"annotations": hints}), **more}


def listed(*tools: dict[str, Any]) -> PinnedServer:
    return pinned_server(GIT, map(ListedTool, tools))


@pytest.mark.parametrize(
    ("hints", "effect"),
    [
        (None, Effect.DESTRUCTIVE),
        ({}, Effect.DESTRUCTIVE),
        ({"readOnlyHint": True}, Effect.READ_ONLY),
        ({"readOnlyHint": True, "destructiveHint": True}, Effect.READ_ONLY),
        ({"readOnlyHint": False}, Effect.DESTRUCTIVE),
        ({"destructiveHint": True, "openWorldHint": True}, Effect.DESTRUCTIVE),
        ({"destructiveHint": False}, Effect.NETWORK),
        ({"destructiveHint": False, "openWorldHint": True}, Effect.NETWORK),
        ({"destructiveHint": False, "openWorldHint": False}, Effect.LOCAL_WRITE),
    ],
)
def test_annotations_give_effect_and_lane(hints: dict[str, bool] | None, effect: Effect) -> None:
    [made] = tools_of_server(GIT, listed(tool("do", hints)))
    assert made.spec.effect is effect
    assert made.spec.resources == (() if effect.is_read else ("mcp:git",))
    assert not made.spec.idempotent


def test_what_reads_an_open_world_is_untrusted_unless_the_operator_says_otherwise() -> None:
    open_world, closed, silent = {"openWorldHint": True}, {"openWorldHint": False}, {"readOnlyHint": True}
    pinned = listed(tool("web", open_world), tool("local", closed), tool("look", silent), tool("log", silent))
    server = McpServer("git", ["x"], tools={"log": McpTool(untrusted=False)})
    assert [made.untrusted for made in tools_of_server(server, pinned)] == [True, False, True, False]


def test_the_operator_s_word_stands_over_the_server_s() -> None:
    rules = {
        "do": McpTool(effect=Effect.NETWORK, idempotent=True, lane="file:{path}", approval="Sends mail.", timeout_s=3),
        "look": McpTool(effect=Effect.DESTRUCTIVE),
        "rm": McpTool(hidden=True),
    }
    server = McpServer("git", ["x"], tools=rules, timeout_s=9)
    pinned = listed(tool("do"), tool("look", {"readOnlyHint": True}), tool("rm"), tool("put", {"idempotentHint": True}))
    do, look, put = tools_of_server(server, pinned)
    assert (do.spec.effect, do.spec.idempotent, do.spec.resources) == (Effect.NETWORK, True, ("file:{path}",))
    assert (do.approval, do.spec.timeout_s) == ("Sends mail.", 3.0)
    assert (look.spec.effect, look.spec.resources, look.spec.timeout_s) == (Effect.DESTRUCTIVE, ("mcp:git",), 9.0)
    assert put.spec.idempotent
    with pytest.raises(InvalidInput, match="no tool named 'doo'; it has do"):
        tools_of_server(McpServer("git", ["x"], tools={"doo": McpTool()}), listed(tool("do")))
    with pytest.raises(ToolSchemaError, match=r"names \{pth\}"):
        tools_of_server(McpServer("git", ["x"], tools={"do": McpTool(lane="file:{pth}")}), listed(tool("do")))


PAY: dict[str, Any] = {
    "type": "object",
    "properties": {
        "cents": {"type": "integer"},
        "key": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "flag": {"type": ["boolean", "null"]},
    },
    "required": ["cents", "key"],
    "additionalProperties": False,
}


def paying(argument: str, **more: Any) -> McpServer:
    return McpServer("shop", ["x"], tools={"pay": McpTool(idempotency_argument=argument, **more)})


def test_the_argument_for_keys_is_not_in_the_model_s_schema_and_makes_the_tool_idempotent() -> None:
    pinned = listed(tool("pay", inputSchema=PAY))
    [made] = tools_of_server(paying("key"), pinned)
    assert set(made.spec.parameters["properties"]) == {"cents", "flag"}
    assert made.spec.parameters["required"] == ["cents"]
    assert made.spec.idempotent
    assert "key" in pinned.tools[0].input_schema["properties"]  # what is compared with the running server
    assert not tools_of_server(paying("key", idempotent=False), pinned)[0].spec.idempotent


@pytest.mark.parametrize(
    ("argument", "hints", "said"),
    [
        ("kee", {}, "no argument 'kee'; it has cents, key, flag"),
        ("cents", {}, "'cents' does not accept text"),
        ("flag", {}, "'flag' does not accept text"),
        ("key", {"readOnlyHint": True}, "is a read"),
    ],
)
def test_an_argument_that_takes_no_key_is_refused(argument: str, hints: dict[str, bool], said: str) -> None:
    with pytest.raises(InvalidInput, match=said) as refused:
        tools_of_server(paying(argument), listed(tool("pay", hints, inputSchema=PAY)))
    assert "tools['pay'].idempotency_argument" in str(refused.value)


def test_what_no_model_can_call_is_left_out_and_told() -> None:
    pinned = listed(
        tool("do"),
        tool("do"),
        tool("list", inputSchema={"type": "array"}),
        tool("ref", inputSchema={"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}),
        tool("none", inputSchema=None),
        tool("long", description="x" * 100_000),
        tool(""),
    )
    assert [made.name for made in pinned.tools] == ["do"]
    assert set(pinned.left_out) == {"do", "list", "ref", "none", "long", "#7"}
    assert "lists it twice" in pinned.left_out["do"]
    many = listed(*(tool(f"t{number}") for number in range(501)))
    assert len(many.tools) == 500
    assert "more than 500" in many.left_out["t500"]


def test_a_brain_takes_its_tools_from_the_file_and_starts_nothing(tmp_path: Path) -> None:
    file = tmp_path / "mcp.lock.json"
    write_catalogue(file, {"git": listed(tool("log", {"readOnlyHint": True}, description="Says the log."))})
    brain = Brain("b", "openai:x", mcp=[GIT], mcp_catalogue=file)
    assert brain.tools.specs["git__log"].description == "Says the log."
    assert "sk-very-secret" not in file.read_text()
    assert json.loads(file.read_text())["servers"]["git"]["env"] == ["GIT_TOKEN"]
    assert "no-such-program" not in file.read_text()


def test_a_brain_with_a_server_that_is_not_pinned_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"'git' is not in the catalogue .* brainq mcp pin"):
        Brain("b", "openai:x", mcp=[GIT], mcp_catalogue=tmp_path / "none.json")
    with pinning_mode():
        assert not Brain("b", "openai:x", mcp=[GIT], mcp_catalogue=tmp_path / "none.json").tools


@pytest.mark.parametrize("change", ["description", "version", "json", "shape"])
def test_a_catalogue_changed_by_hand_is_refused(tmp_path: Path, change: str) -> None:
    file = tmp_path / "mcp.lock.json"
    write_catalogue(file, {"git": listed(tool("log", description="Says the log."))})
    assert read_catalogue(file)["git"] == listed(tool("log", description="Says the log."))
    read = json.loads(file.read_text())
    if change == "description":
        read["servers"]["git"]["tools"][0]["description"] = "Sends the log."
    elif change == "version":
        read["version"] = 7
    else:
        read["servers"]["git"]["tools"] = 1
    file.write_text("{" if change == "json" else json.dumps(read))
    with pytest.raises(SetupError, match="brainq mcp pin"):
        read_catalogue(file)


def test_drift_names_what_is_new_changed_and_gone() -> None:
    before = listed(tool("a"), tool("b"), tool("c"))
    after = listed(tool("b", {"readOnlyHint": True}), tool("c"), tool("d"))
    assert find_drift(before, after) == Drift(new=("d",), changed=("b",), gone=("a",))
    assert str(find_drift(before, after)) == "new: d; changed: b; gone: a"
    assert not find_drift(before, before)
    broken = listed(tool("a"), {"name": "b"}, tool("c"))
    assert str(find_drift(before, broken)).startswith("gone: b (it has no inputSchema")


def test_a_process_that_only_knows_the_tools_loads_no_sdk_and_needs_it_installed(tmp_path: Path) -> None:
    write_catalogue(tmp_path / "mcp.lock.json", {"git": listed(tool("log"))})
    code = """
import sys
from brainq import Brain, McpServer

def make():
    return Brain("b", "openai:x", mcp=[McpServer("git", ["x"])])

assert list(make().tools) == ["git__log"]
assert "mcp" not in sys.modules
sys.modules["mcp"] = None
Brain("b", "openai:x")
make()
"""
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.stderr.splitlines()[-1].endswith(
        "SetupError: MCP servers need the extra `mcp`; install it with: pip install 'brainq[mcp]'"
    )
