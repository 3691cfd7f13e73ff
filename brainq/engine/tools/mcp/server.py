"""An MCP server of a brain or of an `mcpServers` file: how to reach it, the operator's rules for its tools, and the
secrets that its answers must not show."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

from brainq.contracts.status import Effect
from brainq.engine.tools.lanes import LaneScope
from brainq.engine.tools.tool import DEFAULT_TIMEOUT_S, ApprovalRule
from brainq.errors import InvalidInput

DEFAULT_START_S = 30.0
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}", re.ASCII)
MIN_SECRET_CHARS = 6  # a shorter value, such as `1` or `true`, is not a secret, and occurs in many texts
HIDDEN = "[hidden]"
# A path or a mode in the environment is not a secret, and results must be able to name it.
_SECRET_NAME = re.compile(r"key|token|secret|pass|credential|auth|private|dsn|cookie|session", re.IGNORECASE)
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_HTTP = ("http", "streamable-http", "streamableHttp", "streamable_http")


@dataclass(frozen=True, slots=True, kw_only=True)
class McpOAuth:
    """OAuth's client credentials: the right of a program, without a person.

    client_id, client_secret: from the authorization server.
    issuer: the authorization server's URL, as it names itself. A server's hint to another one is ignored.
    scope: the requested scopes, separated by spaces, or None for those that the server needs.

    Raises InvalidInput.
    """

    client_id: str
    client_secret: str = field(repr=False)
    issuer: str
    scope: str | None = None

    def __post_init__(self) -> None:
        for name, text in (("client_id", self.client_id), ("client_secret", self.client_secret)):
            if not text:
                raise InvalidInput(f"oauth.{name}", "it is empty; use what the authorization server gave you")
        parts = urlsplit(self.issuer)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInput(
                "oauth.issuer", f"{self.issuer!r} is not a URL; use one such as https://auth.example.com"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class McpTool:
    """The operator's rules for one tool of a server. None keeps the value of the server's annotations.

    effect: what it does to the world.
    idempotent: True if a call whose worker or connection was lost may run again.
    lane: replaces `mcp:<server>`, such as `repo:{repo_path}` or `global`.
    approval: as for `@brain.tool`.
    timeout_s: the longest time of one call, in seconds. For a task it is the wait for its result, a day by default.
    task: True calls it as a task, which the server continues while the call is parked. None does so if the server
        requires it. False calls it and waits.
    hidden: True hides it from the model.
    untrusted: whether its results may hold text of third parties. By default they may, unless its `openWorldHint` is
        false.
    idempotency_argument: the argument for an idempotency key. It is hidden from the model, and brainq fills in the
        call's key, the same for every attempt. The tool is then idempotent, unless `idempotent` is False.
    """

    effect: Effect | None = None
    idempotent: bool | None = None
    lane: str | None = None
    approval: ApprovalRule = None
    timeout_s: float | None = None
    task: bool | None = None
    hidden: bool = False
    idempotency_argument: str | None = None
    untrusted: bool | None = None


@dataclass(frozen=True, slots=True, eq=False)
class McpServer:
    """A server that speaks the Model Context Protocol, over its stdin and stdout or over streamable HTTP.

    name: its name in tool names (`name__tool`), lanes and logs: 1 to 32 of A-Z a-z 0-9 _ -.
    command: the program and its arguments, which a worker starts at the first call. Give this or `url`.
    env: the program's environment, beside HOME, LOGNAME, PATH, SHELL, TERM and USER. It is kept out of logs, results
        and the catalogue.
    cwd: the program's working directory.
    url: the server's endpoint.
    headers: the headers of every HTTP request, such as Authorization. They are kept out like `env`.
    oauth: how to get tokens, instead of an Authorization header.
    tools: maps the server's name of a tool to the operator's rules.
    timeout_s: the longest time of one call without a rule in its McpTool, in seconds.
    start_timeout_s: how long the server may take to start and to list its tools, in seconds.
    lane_scope: the lane scope of its tools, as for `@brain.tool`.

    Raises InvalidInput.
    """

    name: str
    command: Sequence[str] | None = field(default=None, repr=False)
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False, kw_only=True)
    cwd: str | PathLike[str] | None = field(default=None, kw_only=True)
    url: str | None = field(default=None, repr=False, kw_only=True)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False, kw_only=True)
    oauth: McpOAuth | None = field(default=None, kw_only=True)
    tools: Mapping[str, McpTool] = field(default_factory=dict[str, McpTool], kw_only=True)
    timeout_s: float = field(default=DEFAULT_TIMEOUT_S, kw_only=True)
    start_timeout_s: float = field(default=DEFAULT_START_S, kw_only=True)
    lane_scope: LaneScope = field(default="tenant", kw_only=True)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InvalidInput(
                "name", f"{self.name!r} cannot name an MCP server; use 1 to 32 of A-Z a-z 0-9 _ -, a letter first"
            )
        if (self.command is None) == (self.url is None):
            raise self._wrong("command", "give either command=[program, argument, ...] or url=")
        if self.command is not None:
            self._check_command(self.command)
        if self.url is not None:
            self._check_url(self.url)
        for field_name, texts in (("env", self.env), ("headers", self.headers)):
            for key, text in texts.items():
                if not key or not isinstance(cast("object", text), str):
                    raise self._wrong(field_name, f"{key!r} must be a name, and its value a text")
        for field_name, seconds in self._seconds():
            if not (math.isfinite(seconds) and seconds > 0):
                raise self._wrong(field_name, f"{seconds!r} must be finite and above 0 seconds")

    @classmethod
    def from_file(
        cls, path: str | PathLike[str], *, tools: Mapping[str, Mapping[str, McpTool]] | None = None
    ) -> list[McpServer]:
        """Return the servers of an `mcpServers` JSON file, as `servers_from_file` reads it."""
        return servers_from_file(path, tools=tools)

    @property
    def transport(self) -> str:
        return "stdio" if self.url is None else "http"

    @property
    def key(self) -> tuple[object, ...]:
        """The key of the way in which the server is reached. Servers with the same key may share a session."""
        return (
            self.name,
            tuple(self.command or ()),
            None if self.cwd is None else fspath(self.cwd),
            self.url,
            tuple(sorted(self.env.items())),
            tuple(sorted(self.headers.items())),
            self.oauth,
        )

    def rule(self, tool: str) -> McpTool:
        return self.tools.get(tool, McpTool())

    def _check_command(self, command: object) -> None:
        if isinstance(command, str) or not isinstance(command, Sequence) or not command:
            raise self._wrong("command", "use a list, such as ['uvx', 'mcp-server-git']")
        if not all(isinstance(part, str) and "\0" not in part for part in command) or not command[0]:
            raise self._wrong("command", "each part must be a text")
        if self.headers:
            raise self._wrong("headers", "a server with a command has none; use env=")
        if self.oauth is not None:
            raise self._wrong("oauth", "a server with a command takes no tokens; use env=")

    def _check_url(self, url: str) -> None:
        try:
            parts = urlsplit(url)
        except ValueError:  # which may quote a password
            raise self._wrong("url", "cannot be read; use http:// or https:// and a host") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise self._wrong("url", "use http:// or https:// and a host")
        if self.env or self.cwd is not None:
            raise self._wrong("env", "a server with a url has no environment; use headers=")
        if self.oauth is not None and any(name.lower() == "authorization" for name in self.headers):
            raise self._wrong("oauth", "its tokens go into the header Authorization; leave that out of headers")

    def _seconds(self) -> list[tuple[str, float]]:
        of_tools = [
            (f"tools[{name!r}].timeout_s", rule.timeout_s)
            for name, rule in self.tools.items()
            if rule.timeout_s is not None
        ]
        return [("timeout_s", self.timeout_s), ("start_timeout_s", self.start_timeout_s), *of_tools]

    def _wrong(self, field_name: str, problem: str) -> InvalidInput:
        return InvalidInput(field_name, f"MCP server {self.name!r}: {problem}")


def by_server_name(servers: Sequence[McpServer]) -> dict[str, McpServer]:
    """Return the servers by their names. Raises InvalidInput for other objects, and for a repeated name."""
    found: dict[str, McpServer] = {}
    for server in servers:
        if not isinstance(cast("object", server), McpServer):
            raise InvalidInput("mcp", f"takes McpServer(...), got {type(server).__name__}")
        if server.name in found:
            raise InvalidInput("mcp", f"there are two servers named {server.name!r}; give each its own name")
        found[server.name] = server
    return found


class SecretFilter:
    """A filter of secret values: of variables with a secret's name, of headers, and in the URL, the longest first."""

    def __init__(self, values: Iterable[str]) -> None:
        self._values = sorted({value for value in values if len(value) >= MIN_SECRET_CHARS}, key=len, reverse=True)

    @classmethod
    def for_server(cls, server: McpServer) -> SecretFilter:
        values = [value for name, value in server.env.items() if _SECRET_NAME.search(name)]
        values += server.headers.values()
        # `Bearer token`: a server may echo the token alone.
        values += [value.partition(" ")[2] for value in server.headers.values()]
        if server.oauth is not None:
            values.append(server.oauth.client_secret)
        if server.url is not None:
            parts = urlsplit(server.url)
            values += [parts.password or "", *(value for _, value in parse_qsl(parts.query))]
        return cls(values)

    def hide(self, text: str) -> str:
        for value in self._values:
            text = text.replace(value, HIDDEN)
        return text

    def hide_in(self, value: Any) -> Any:
        """Return a JSON value with the secrets hidden in every text."""
        if not self._values:
            return value
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, list):
            return [self.hide_in(item) for item in cast("list[Any]", value)]
        if isinstance(value, Mapping):
            inner = cast("Mapping[str, Any]", value)
            return {self.hide(key): self.hide_in(item) for key, item in inner.items()}
        return value


def servers_from_file(
    path: str | PathLike[str],
    *,
    tools: Mapping[str, Mapping[str, McpTool]] | None = None,
    environment: Mapping[str, str] | None = None,
) -> list[McpServer]:
    """Return the servers under `mcpServers`, in order, without those with `"disabled": true`.

    `${NAME}` and `${NAME:-default}` stand for environment variables in every text. Keys other than command, args, env,
    cwd, type, url and headers are for other programs, and are ignored.

    tools: maps a server and a tool to the operator's rules.
    environment: replaces this process's.

    Raises InvalidInput naming the file, the server and the remedy.
    """
    entries = _read_entries(Path(path))
    rules = tools or {}
    if unknown := sorted(set(rules) - set(entries)):
        known = ", ".join(entries) or "none"
        raise InvalidInput("tools", f"{path} has no server named {unknown[0]!r}; it has {known}")
    variables = os.environ if environment is None else environment
    return [
        _read_server(
            f"{path}: server {name!r}", name, _with_variables(path, name, entry, variables), rules.get(name, {})
        )
        for name, entry in entries.items()
        if entry.get("disabled") is not True
    ]


def _read_entries(path: Path) -> dict[str, dict[str, Any]]:
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


def _with_variables(path: str | PathLike[str], name: str, value: Any, variables: Mapping[str, str]) -> Any:
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
        return [_with_variables(path, name, item, variables) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        inner = cast("dict[str, Any]", value)
        return {key: _with_variables(path, name, item, variables) for key, item in inner.items()}
    return value


def _read_server(where: str, name: str, entry: dict[str, Any], tools: Mapping[str, McpTool]) -> McpServer:
    kind = entry.get("type", "stdio" if "command" in entry else "http")
    if kind == "stdio":
        command, arguments = entry.get("command"), entry.get("args", [])
        if not isinstance(command, str) or not isinstance(arguments, list):
            raise InvalidInput("path", f"{where}: needs a command, a text, and args, a list of texts")
        return McpServer(
            name,
            [command, *map(str, cast("list[Any]", arguments))],
            env=_read_texts(where, "env", entry),
            cwd=entry.get("cwd"),
            tools=tools,
        )
    if kind in _HTTP:
        url = entry.get("url")
        if not isinstance(url, str):
            raise InvalidInput("path", f"{where}: needs a url")
        return McpServer(name, url=url, headers=_read_texts(where, "headers", entry), tools=tools)
    raise InvalidInput(
        "path", f"{where}: its type {kind!r} is not supported; use a server with stdio or streamable HTTP"
    )


def _read_texts(where: str, field: str, entry: dict[str, Any]) -> dict[str, str]:
    texts: Any = entry.get(field) or {}
    if not isinstance(texts, dict):
        raise InvalidInput("path", f"{where}: its {field} must be an object of texts")
    return {str(key): str(value) for key, value in cast("dict[Any, Any]", texts).items()}
