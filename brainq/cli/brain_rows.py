"""Brains as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from brainq.cli.style import EFFECT_STYLES
from brainq.cli.table import PageTable, fact, key, words
from brainq.contracts.brain_seen import BrainSeen


def as_table(brains: Sequence[BrainSeen]) -> PageTable:
    table = PageTable(
        key("brain"), fact("default", 1), fact("model", 2), fact("live at most", 2), words("tools", 3)
    )
    for brain in brains:
        tools = Text(", ").join(Text(tool.name, EFFECT_STYLES[tool.effect.value]) for tool in brain.tools)
        table.add(
            brain.name,
            "yes" if brain.is_default and len(brains) > 1 else "",
            brain.model,
            str(brain.max_live_turns or ""),
            tools,
        )
    return table
