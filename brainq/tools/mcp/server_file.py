"""The `mcpServers` JSON file that other programs have, read as McpServers."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, cast

from brainq.errors import InvalidInput
from brainq.tools.mcp.server import McpServer, McpTool

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_HTTP = ("http", "streamable-http", "streamableHttp", "streamable_http")


def servers_from_file(
    path: str | PathLike[str],
    *,
    tools: Mapping[str, Mapping[str, McpTool]] | None = None,
    environment: Mapping[str, str] | None = None,
) -> list[McpServer]:
    """The servers under `mcpServers`, in their order, without those with `"disabled": true`.

    `${NAME}` and `${NAME:-default}` stand for environment variables in every text. What the file says beside command,
    args, env, cwd, type, url and headers is for other programs, and is not looked at.

    tools         server -> tool -> what the operator says of it
    environment   in place of this process's

    Raises InvalidInput naming the file, the server and the remedy.
    """
    entries = _entries(Path(path))
    rules = tools or {}
    if unknown := sorted(set(rules) - set(entries)):
        known = ", ".join(entries) or "none"
        raise InvalidInput("tools", f"{path} has no server named {unknown[0]!r}; it has {known}")
    variables = os.environ if environment is None else environment
    return [
        _server(f"{path}: server {name!r}", name, _filled(path, name, entry, variables), rules.get(name, {}))
        for name, entry in entries.items()
        if entry.get("disabled") is not True
    ]


def _entries(path: Path) -> dict[str, dict[str, Any]]:
    try:
        read: Any = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InvalidInput("path", f"{path} cannot be read ({error.strerror}); name an mcpServers file") from error
    except ValueError as error:
        raise InvalidInput("path", f"{path} is not JSON ({error})") from error
    found: Any = cast("dict[str, Any]", read).get("mcpServers") if isinstance(read, dict) else None
    if not isinstance(found, dict):
        raise InvalidInput("path", f'{path} has no "mcpServers"; its shape is {{"mcpServers": {{"name": {{...}}}}}}')
    entries = cast("dict[str, Any]", found)
    for name, entry in entries.items():
        if not isinstance(entry, dict):
            raise InvalidInput("path", f"{path}: server {name!r} must be an object with command or url")
    return entries


def _filled(path: str | PathLike[str], name: str, value: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(value, str):

        def one(match: re.Match[str]) -> str:
            variable, default = match[1], match[2]
            if variable not in variables and default is None:
                raise InvalidInput(
                    "path", f"{path}: server {name!r} needs the environment variable {variable}, which is not set"
                )
            return variables.get(variable, default or "")

        return _VARIABLE.sub(one, value)
    if isinstance(value, list):
        return [_filled(path, name, item, variables) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        inner = cast("dict[str, Any]", value)
        return {key: _filled(path, name, item, variables) for key, item in inner.items()}
    return value


def _server(where: str, name: str, entry: dict[str, Any], tools: Mapping[str, McpTool]) -> McpServer:
    kind = entry.get("type", "stdio" if "command" in entry else "http")
    if kind == "stdio":
        command, arguments = entry.get("command"), entry.get("args", [])
        if not isinstance(command, str) or not isinstance(arguments, list):
            raise InvalidInput("path", f"{where}: needs a command, a text, and args, a list of texts")
        return McpServer(
            name,
            [command, *map(str, cast("list[Any]", arguments))],
            env=_texts(where, "env", entry),
            cwd=entry.get("cwd"),
            tools=tools,
        )
    if kind in _HTTP:
        url = entry.get("url")
        if not isinstance(url, str):
            raise InvalidInput("path", f"{where}: needs a url")
        return McpServer(name, url=url, headers=_texts(where, "headers", entry), tools=tools)
    raise InvalidInput(
        "path", f"{where}: its type {kind!r} is not spoken here; use a server with stdio or streamable HTTP"
    )


def _texts(where: str, field: str, entry: dict[str, Any]) -> dict[str, str]:
    texts: Any = entry.get(field) or {}
    if not isinstance(texts, dict):
        raise InvalidInput("path", f"{where}: its {field} must be an object of texts")
    return {str(key): str(value) for key, value in cast("dict[Any, Any]", texts).items()}
