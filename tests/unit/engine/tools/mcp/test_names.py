"""Names by which models call the tools of a server."""

from __future__ import annotations

import re
from itertools import permutations
from pathlib import Path

import pytest

from brainq import Brain
from brainq.engine.tools.mcp.catalogue import ListedTool, PinnedServer, find_drift, pinned_server, write_catalogue
from brainq.engine.tools.mcp.names import keep_names, model_names
from brainq.engine.tools.mcp.server import McpServer

GIT = McpServer("git", ["no-such-program"])


def pinned(*names: str) -> PinnedServer:
    return pinned_server(GIT, [ListedTool({"name": name, "inputSchema": {"type": "object"}}) for name in names])


def names_of(*names: str) -> dict[str, str]:
    return model_names("git", pinned(*names).tools)


@pytest.mark.parametrize(
    "names",
    [
        ("a.b", "a_b"),
        ("a.b", "a/b", "a b"),
        ("größe", "grüße", "gr__e"),
        ("日本", "中文", "__"),
        ("!", "?", "_"),
        ("x" * 80, "x" * 80 + "y", "x" * 80 + ".", "x" * 80 + "_"),
        ("a.b", "a_b", "a_b_" + "0" * 8),
    ],
)
def test_tools_that_become_one_name_by_cleaning_have_names_of_their_own(names: tuple[str, ...]) -> None:
    found = names_of(*names)
    assert len(set(found.values())) == len(names)
    assert all(re.fullmatch(r"git__[A-Za-z0-9_-]{1,59}", name) for name in found.values()), found
    assert all(names_of(*order) == found for order in permutations(names))


def test_a_name_that_needs_no_cleaning_is_not_touched_and_one_that_is_alone_has_no_digest() -> None:
    assert names_of("a.b/c", "log") == {"a.b/c": "git__a_b_c", "log": "git__log"}
    assert names_of("a.b", "a_b")["a_b"] == "git__a_b"
    digest = names_of("a.b", "a_b")["a.b"]
    assert names_of("a.b", "a_b", digest.removeprefix("git__"))["a.b"] not in (digest, "git__a_b")


def test_a_tool_that_was_pinned_keeps_its_name_whatever_comes_later() -> None:
    before = pinned("a.b")
    now = keep_names("git", before, pinned("a_b", "a.b", "a/b"))
    names = model_names("git", now.tools)
    assert names["a.b"] == "git__a_b"
    assert len(set(names.values())) == 3
    assert find_drift(now, pinned("a.b", "a/b", "a_b")) == find_drift(
        pinned("x"), pinned("x")
    )  # the server says no more
    later = keep_names("git", now, pinned("a.b", "a_b"))
    assert model_names("git", later.tools) == {"a.b": "git__a_b", "a_b": names["a_b"]}
    assert keep_names("git", None, before) == before


def test_a_brain_has_tools_whose_names_are_alike(tmp_path: Path) -> None:
    write_catalogue(tmp_path / "lock", {"git": pinned("a.b", "a_b", "a/b")})
    tools = Brain("b", "openai:x", mcp=[GIT], mcp_catalogue=tmp_path / "lock").tools
    assert len(tools) == 3
    assert tools["git__a_b"].origin == "mcp.git.a_b"
