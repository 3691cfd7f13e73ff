"""A table of what services refuse, from brainq/adapters/models/refusal_examples.toml, and what brainq makes of each.

`python -m lab.refusals` prints it.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

from brainq.adapters.models.error_body import error_detail
from brainq.contracts.model import render_failure
from brainq.contracts.status import Ending
from brainq.gateway.wires.openai.errors import failure_status

SHOWN_CHARS = 60
HEADS = "| service | status | error | kind | retried |\n|---|---|---|---|---|"


def examples() -> list[dict[str, Any]]:
    """Return the rows of refusal_examples.toml."""
    return tomllib.loads(files("brainq.adapters.models").joinpath("refusal_examples.toml").read_text())["refusal"]


def gateway_answer(kind: str) -> str:
    """Return the status and the code with which the gateway's OpenAI wires answer for a turn that ended with this kind
    of failure."""
    status, code = failure_status(Ending.FAILED, render_failure(kind, "x"))
    return f"{status} `{code}`"


def table() -> str:
    """Return the table, with one row for each example."""
    return "\n".join([HEADS, *map(_row, examples())])


def _row(row: dict[str, Any]) -> str:
    detail = error_detail(row["body"])
    words = " ".join(detail.message.replace("`", "'").split())
    shown = words if len(words) <= SHOWN_CHARS else f"{words[:SHOWN_CHARS].rsplit(' ', 1)[0]} ..."
    codes = ", ".join(code for code in detail.codes[:2] if code != "error")
    says = f"`{codes}`: `{shown}`" if codes else f"`{shown}`"
    again = "no"
    if row["retry"]:
        again = f"after {row['wait_s']:g} s" if "wait_s" in row else "yes"
    status = "200, in a stream" if row["status"] == 200 else str(row["status"])
    cells = (row["service"], status, says.replace("|", "\\|"), row["kind"], again)
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print(table())
