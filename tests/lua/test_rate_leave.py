"""rate_leave.lua: who wants no place any more leaves the line."""

from __future__ import annotations

from typing import Any

from tests.lua.rig import Rig
from tests.lua.test_rate_take import COUNTS_MS
from tests.lua.test_rate_tenants import ask, fill, flood, in_line

LEFT = ("line", "order", "due", "rule", "tenants")


def leave(rig: Rig, session: str) -> list[str]:
    """It leaves, and once more: what the second time says."""
    return rig.run("rate_leave", **parts(rig), ticket=f"{session} t 1 step")


def once(rig: Rig, session: str) -> str:
    return rig.once("rate_leave", **parts(rig), ticket=f"{session} t 1 step")[0]


def parts(rig: Rig) -> dict[str, Any]:
    return {part: rig.keys.rate("openai:gpt", part) for part in LEFT}


def test_a_hundred_that_were_cancelled_hold_nobody_up(rig: Rig) -> None:
    fill(rig)
    flood(rig, "acme:", 100)
    assert ask(rig, "acme:last")[1] > 10 * COUNTS_MS * 0.9
    for i in range(100):
        assert once(rig, f"acme:{i:03d}") == "LEFT"
    assert in_line(rig) == ["acme:last"]
    assert ask(rig, "acme:last")[:2] == ["WAIT", COUNTS_MS]
    rig.pass_ms(COUNTS_MS)
    assert ask(rig, "acme:last") == ["GO"]


def test_who_leaves_leaves_once_and_who_never_stood_there_leaves_nothing(rig: Rig) -> None:
    fill(rig)
    ask(rig, "acme:2")
    ask(rig, "acme:4")
    leave(rig, "acme:4")  # and once more
    assert leave(rig, "acme:3") == ["NONE"]
    assert in_line(rig) == ["acme:2"]
