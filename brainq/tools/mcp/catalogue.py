"""The file of pinned servers, beside the app and under version control."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from brainq.errors import SetupError
from brainq.tools.mcp.pinned import PinnedServer, as_json, hash_of

DEFAULT_CATALOGUE = "mcp.lock.json"
VERSION = 1
REMEDY = "look at what the servers offer and pin it: brainq mcp pin"


def read_catalogue(path: str | PathLike[str]) -> dict[str, PinnedServer]:
    """The pinned servers by name; none where there is no file. Raises SetupError for a file that cannot be trusted."""
    try:
        text = Path(path).read_text("utf-8")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SetupError(f"the MCP catalogue {path} cannot be read: {error.strerror}") from error
    try:
        read: Any = json.loads(text)
        if read["version"] != VERSION:
            raise SetupError(f"the MCP catalogue {path} is of version {read['version']!r}; {REMEDY}")
        return {
            name: _server(path, name, dict(entry))
            for name, entry in cast("dict[str, Any]", read["servers"]).items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        why = f"{error.error_count()} fields are wrong" if isinstance(error, ValidationError) else repr(error)
        raise SetupError(
            f"the MCP catalogue {path} is not what `brainq mcp pin` writes ({why}); {REMEDY}"
        ) from error


def write_catalogue(path: str | PathLike[str], servers: Mapping[str, PinnedServer]) -> None:
    """Replace the file in one step. Raises SetupError."""
    entries = {name: {"hash": hash_of(server), **as_json(server)} for name, server in servers.items()}
    text = json.dumps({"version": VERSION, "servers": entries}, indent=2, ensure_ascii=False) + "\n"
    target = Path(path)
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        beside.write_text(text, "utf-8", errors="replace")
        beside.replace(target)
    except OSError as error:
        raise SetupError(f"the MCP catalogue {path} cannot be written: {error.strerror}") from error
    finally:
        beside.unlink(missing_ok=True)


def _server(path: str | PathLike[str], name: str, entry: dict[str, Any]) -> PinnedServer:
    pinned_hash = entry.pop("hash")
    server = PinnedServer.model_validate(entry)
    if hash_of(server) != pinned_hash:
        raise SetupError(
            f"the MCP catalogue {path} was changed by hand: server {name!r} does not fit its hash; {REMEDY}. "
            "What you want otherwise than the server belongs in McpServer(tools={...})"
        )
    return server
