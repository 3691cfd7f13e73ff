"""The budget arguments of scripts, and the contents of a window's counter."""

from __future__ import annotations

import json
from typing import Any

from tests.lua.rig import Rig

COUNTER, TRUST, LINE = "bq:{money}:w:all/day:", "bq:{money}:trust:all", "bq:{money}:line:all/day"
FAR_MS = 80_000_000


def money(rig: Rig, usd: float = 0.1, *, blind: bool = False, room: int = 1) -> str:
    start = rig.now_ms // 86_400_000 * 86_400_000
    window = {
        "key": COUNTER,
        "name": "all/day",
        "trust": TRUST,
        "starts": [start + days * 86_400_000 for days in (-1, 0, 1, 2)],
        "room": room,
    }
    return json.dumps({"usd": usd, "blind": blind, "windows": [window]})


def counter(rig: Rig) -> str:
    return f"{COUNTER}{rig.now_ms // 86_400_000 * 86_400_000}"


def counted(rig: Rig, *names: str) -> list[float]:
    return [float(found or 0) for found in rig.client.hmget(counter(rig), *names)]


def granted(rig: Rig, usd: float, spent: float = 0.0) -> None:
    rig.run(
        "money_grant",
        counter=counter(rig),
        granted=str(usd),
        spent=str(spent),
        is_full="0",
        returned="0",
        keep_ms=172_800_000,
    )


def held(rig: Rig, usd: float = 0.1, *, blind: bool = False, **given: Any) -> list[Any]:
    return rig.run("step_begin", money=money(rig, usd, blind=blind), **given)
