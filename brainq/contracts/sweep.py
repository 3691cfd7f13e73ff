"""What the sweeper is given to look at, and what one look finds."""

from __future__ import annotations

from dataclasses import dataclass

TurnKey = tuple[str, str]  # session, turn


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at a turn found that is to be done beyond Redis; `fence` is the turn's. `lost`: its owner had
    stopped beating, and others were rung."""

    fence: int = 0
    actions: tuple[tuple[str, ...], ...] = ()
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Due:
    """Turns to be looked at. `stepped` looks were brought nearer, because the clock has stepped back since they were
    put off."""

    turns: tuple[TurnKey, ...] = ()
    stepped: int = 0
