"""The names by which models call the tools of a server."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from brainq.engine.tools.mcp.catalogue import PinnedServer, PinnedTool

MAX_TOOL_NAME_CHARS = 64
"""The limit of OpenAI and Anthropic (`^[a-zA-Z0-9_-]{1,64}$` in both API references)."""
SEPARATOR = "__"


def cleaned_name(server: str, tool: str) -> str:
    """Return `server__tool` in letters, digits, _ and -. A name of more than 64 characters is cut, with a digest."""
    name = f"{server}{SEPARATOR}{re.sub(r'[^A-Za-z0-9_-]', '_', tool)}"
    return name if len(name) <= MAX_TOOL_NAME_CHARS else _with_digest(name, tool, 8)


def model_names(server: str, tools: Sequence[PinnedTool]) -> dict[str, str]:
    """Return the name for models of each tool, under the server's own name.

    A pinned name is kept. If several tools have the same cleaned name, the tool whose name needs no cleaning gets it,
    and the others get a digest of their own name. The order of the list does not matter.
    """
    names = {tool.name: tool.model_name for tool in tools if tool.model_name is not None}
    alike: dict[str, list[str]] = {}
    for name in sorted(tool.name for tool in tools if tool.model_name is None):
        alike.setdefault(cleaned_name(server, name), []).append(name)
    taken = {*names.values(), *alike}
    for cleaned, originals in alike.items():
        owners = originals if len(originals) == 1 else [name for name in originals if _is_clean(server, name)]
        is_free = cleaned not in names.values()
        for name in originals:
            names[name] = cleaned if is_free and name in owners else _free_name(cleaned, name, taken)
    return names


def keep_names(server: str, before: PinnedServer | None, found: PinnedServer) -> PinnedServer:
    """Return `found`, with the earlier names for models of the tools that were pinned before."""
    old = {} if before is None else model_names(server, before.tools)
    new = model_names(server, found.tools)
    renamed = {name: old[name] for name in new if old.get(name, new[name]) != new[name]}
    kept = [tool.model_copy(update={"model_name": renamed.get(tool.name)}) for tool in found.tools]
    return found.model_copy(update={"tools": tuple(kept)})


def _is_clean(server: str, tool: str) -> bool:
    return cleaned_name(server, tool) == f"{server}{SEPARATOR}{tool}"


def _free_name(cleaned: str, tool: str, taken: AbstractSet[str]) -> str:
    """Return the name with a digest, which is longer if the server lists a tool of that very name."""
    names = [_with_digest(cleaned, tool, size) for size in (8, 16, 32)]
    return next((name for name in names if name not in taken), names[-1])


def _with_digest(name: str, tool: str, size: int) -> str:
    digest = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:size]
    return f"{name[: MAX_TOOL_NAME_CHARS - size - 1]}_{digest}"
