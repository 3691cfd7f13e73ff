"""The digest of a brain's declarations. It is equal if two workers would continue a turn in the same way, as far as
declarations show that. The code of functions is not part of it: `BRAINQ_BUILD` names that."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from pydantic import BaseModel

from brainq.contracts.build import DeclaredBrain, WorkerBuild
from brainq.engine.brain.brain import Brain
from brainq.engine.brain.brains import Brains

DIGEST_CHARS = 12
_PARTS = (
    *(
        "name",
        "system_prompt",
        "limits",
        "options",
        "for_step",
        "parallel_tools",
        "show_citations",
        "memory",
        "context",
    ),
    *("thinking", "selection", "prompts", "auxiliary_model", "approvals", "after_untrusted", "children", "prompt_id"),
    *("output_schema", "model"),
)
"""The attributes that decide how a turn continues. Callbacks, rules for content in SQL and the cap on live turns do not
decide that."""


def brain_digest(brain: Brain) -> str:
    """Return 12 hexadecimal digits, which are the same in every process with the same declarations."""
    parts: dict[str, Any] = {name: _plain(getattr(brain, name)) for name in _PARTS}
    # The tools of MCP servers are part of it, as they are pinned.
    parts["tools"] = [_plain(spec) for spec in brain.tools.specs.values()]
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_CHARS]


def _plain(part: Any) -> Any:
    """Return a part as JSON. An object of the brain's own is replaced by the name of its class, a function by its own
    name."""
    if isinstance(part, BaseModel):
        return part.model_dump(mode="json", warnings=False)
    if part is None or isinstance(part, str | int | float | bool):
        return part
    if isinstance(part, Mapping):
        return {str(key): _plain(value) for key, value in part.items()}
    if isinstance(part, Sequence | frozenset | set):
        return [_plain(item) for item in (part if isinstance(part, Sequence) else sorted(part))]
    if is_dataclass(part) and not isinstance(part, type):
        return {field.name: _plain(getattr(part, field.name)) for field in fields(part) if field.init}
    named = part if hasattr(part, "__qualname__") else type(part)
    own_name = getattr(part, "name", "")
    return f"{named.__module__}.{named.__qualname__} {own_name if isinstance(own_name, str) else ''}".rstrip()


def worker_build(brains: Brains, build: str | None) -> WorkerBuild:
    """Return what a process of these brains reports when it claims work. If `build` (BRAINQ_BUILD) is None, the build
    is named after the digests of the brains."""
    declared = [DeclaredBrain(brain.name, brain_digest(brain), brain.pin or "") for brain in brains]
    named = build or "brains-" + hashlib.sha256(" ".join(each.digest for each in declared).encode()).hexdigest()[:8]
    return WorkerBuild(named, tuple(declared), is_distinct=build is not None or any(each.pin for each in declared))
