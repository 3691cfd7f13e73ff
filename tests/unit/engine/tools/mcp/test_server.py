"""McpServer, and the mcpServers file that people have."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from brainq.engine.tools.mcp.server import McpOAuth, McpServer, McpTool, SecretFilter, by_server_name, servers_from_file
from brainq.errors import InvalidInput

OAUTH = McpOAuth(client_id="me", client_secret="sk-3456789", issuer="https://auth.example")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"name": "a b", "command": ["x"]}, "1 to 32"),
        ({"name": "git"}, "either command"),
        ({"name": "git", "command": ["x"], "url": "http://x"}, "either command"),
        ({"name": "git", "command": "uvx mcp-server-git"}, "use a list"),
        ({"name": "git", "command": []}, "use a list"),
        ({"name": "git", "command": ["x"], "headers": {"a": "b"}}, "use env="),
        ({"name": "api", "url": "ftp://x"}, "http:// or https://"),
        ({"name": "api", "url": "http://x", "env": {"a": "b"}}, "use headers="),
        ({"name": "git", "command": ["x"], "env": {"A": 1}}, "'A' must be a name, and its value a text"),
        ({"name": "git", "command": ["x"], "oauth": OAUTH}, "takes no tokens"),
        (
            {"name": "api", "url": "http://x", "oauth": OAUTH, "headers": {"authorization": "Bearer x"}},
            "leave that out of headers",
        ),
        ({"name": "git", "command": ["x"], "timeout_s": 0}, "above 0"),
        ({"name": "git", "command": ["x"], "tools": {"log": McpTool(timeout_s=-1)}}, "tools['log'].timeout_s"),
    ],
)
def test_what_cannot_be_reached_is_refused_with_the_remedy(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        McpServer(**arguments)
    assert said in str(refused.value)


def test_what_is_secret_is_not_in_its_repr() -> None:
    server = McpServer("git", ["x", "--token", "sk-1234567"], env={"TOKEN": "sk-2345678"})
    web = McpServer("api", url="https://me:pw123456@x/?key=k1234567", headers={"Authorization": "Bearer abcdefg"})
    shown = repr(server) + repr(web) + repr(McpServer("hosted", url="https://x", oauth=OAUTH))
    assert not [word for word in ("sk-", "pw123456", "k1234567", "abcdefg") if word in shown]


@pytest.mark.parametrize(("field", "given"), [("client_id", ""), ("client_secret", ""), ("issuer", "auth.example")])
def test_credentials_that_get_no_token_are_refused(field: str, given: str) -> None:
    with pytest.raises(InvalidInput, match=rf"oauth\.{field}"):
        replace(OAUTH, **{field: given})


def test_secrets_are_taken_out_of_texts_and_paths_are_not() -> None:
    server = McpServer("git", ["x"], env={"API_KEY": "sk-2345678", "STORE": "/var/store"})
    web = McpServer("api", url="https://me:pw123456@x/?key=k1234567", headers={"Authorization": "Bearer abcdefg"})
    said = {"a /var/store": ["sk-2345678", 1, None]}
    assert SecretFilter.for_server(server).hide_in(said) == {"a /var/store": ["[hidden]", 1, None]}
    assert SecretFilter.for_server(web).hide("abcdefg pw123456 k1234567") == "[hidden] [hidden] [hidden]"


def test_two_servers_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidInput, match="two servers named 'git'"):
        by_server_name([McpServer("git", ["x"]), McpServer("git", ["y"])])


def written(folder: Path, servers: object) -> Path:
    file = folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers, "other": 1}))
    return file


def test_the_file_of_other_programs_is_read(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        {
            "git": {"command": "uvx", "args": ["git", "${REPO}"], "env": {"KEY": "${KEY:-none}"}, "alwaysAllow": ["a"]},
            "off": {"command": "x", "disabled": True},
            "api": {"type": "http", "url": "https://x/${REPO}", "headers": {"Authorization": "Bearer ${TOKEN}"}},
        },
    )
    git, api = servers_from_file(
        file, tools={"git": {"log": McpTool(hidden=True)}}, environment={"REPO": "r", "TOKEN": "t"}
    )
    assert (git.name, git.command, git.env) == ("git", ["uvx", "git", "r"], {"KEY": "none"})
    assert git.rule("log").hidden
    assert (api.url, api.headers, api.transport) == ("https://x/r", {"Authorization": "Bearer t"}, "http")


@pytest.mark.parametrize(
    ("servers", "said"),
    [
        ({"git": {"command": "x", "args": ["${NOT_SET}"]}}, "NOT_SET"),
        ({"git": {"type": "sse", "url": "http://x"}}, "'sse' is not supported"),
        ({"git": {"type": "stdio"}}, "needs a command"),
        ({"git": {"type": "http"}}, "needs a url"),
        ({"git": {"command": "x", "env": ["a"]}}, "env must be an object"),
        ({"git": "x"}, "must be an object"),
        (None, 'no "mcpServers"'),
    ],
)
def test_a_file_that_cannot_be_used_names_server_and_remedy(tmp_path: Path, servers: object, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        servers_from_file(written(tmp_path, servers), environment={})
    assert said in str(refused.value)


def test_a_file_that_is_not_there_or_no_json_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        McpServer.from_file(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(InvalidInput, match="not JSON"):
        McpServer.from_file(tmp_path / "bad.json")
    with pytest.raises(InvalidInput, match="no server named 'svn'"):
        McpServer.from_file(written(tmp_path, {"git": {"command": "x"}}), tools={"svn": {}})
