"""A call that no worker ended, as the brain's hook is told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from brainq.contracts.outcome import ToolOutcome


@dataclass(frozen=True, slots=True)
class DueHook:
    """The arguments are those it was to run with."""

    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    outcome: ToolOutcome
