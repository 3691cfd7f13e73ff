"""A brain with two tools of your own. Run it: `brainq dev -A examples.own_tool:brain`."""

from __future__ import annotations

import os
from pathlib import Path

from brainq import Brain, Effect
from brainq.testing import ScriptedProvider, calls, says

LIST = Path(os.environ.get("SHOPPING_LIST", "shopping.txt"))
MODEL = ScriptedProvider([calls(("read_list", {})), calls(("add_item", {"item": "oats"})), says("Oats are on it.")])

brain = Brain("shopping", MODEL, "You keep a shopping list.")  # a real model: "openai:gpt-4.1-mini"


@brain.tool(effect=Effect.READ_ONLY)
def read_list() -> list[str]:
    """What is on the shopping list."""
    return LIST.read_text().splitlines() if LIST.exists() else []


@brain.tool(effect=Effect.LOCAL_WRITE, resources=("shopping-list",))
def add_item(item: str) -> str:
    """Put one item on the shopping list."""
    with LIST.open("a") as file:
        file.write(f"{item}\n")
    return f"added {item}"
