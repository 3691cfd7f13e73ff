"""Shares: how much of a model's limit each of several cells may use, decided where all ask, in home's SQL.

A share is counted in parts of the limit, WHOLE of them. What cells may use, or have used within the service's window,
never comes to more than WHOLE, with two exceptions. A request that is greater than its share goes when its cell uses
nothing else. And a cell that cannot ask home while others can goes on with at most an equal part, which those may have
been given by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

WHOLE = 1_000_000
LEASE_S = 15.0
"""For so long a share is given; it is asked for anew every few seconds."""
ASK_EVERY_S = 5.0
USED_S = 65.0
"""So long what was taken counts at the service: a minute, and the time in which a request arrives."""
HEADROOM = 2  # a cell that uses its share without waiting wants twice what it uses, so that more finds room
ROTATE_S = 180.0  # the turn of those who get a request more than others, where a limit has fewer than they ask for


@dataclass(frozen=True, slots=True)
class ShareReport:
    """What one cell's Redis says of a model.

    mark      greater at each look: what was decided for an earlier look is not put there any more
    share     parts that it may use now
    used      parts that count within the window
    waits     requests wait for their place
    requests  the limit a minute, the smaller of what is set and learned; None: only tokens are limited, or nothing is
    """

    model: str
    mark: int
    share: int
    used: int
    waits: bool
    requests: int | None = None

    @property
    def wanted(self) -> int:
        """Parts that the cell would use: all where requests wait, none where nothing is used."""
        if self.waits:
            return WHOLE
        return min(WHOLE, self.used * HEADROOM)

    @property
    def is_idle(self) -> bool:
        return not (self.share or self.used or self.waits)


@dataclass(frozen=True, slots=True)
class ShareRow:
    """One cell's part of a model's limit as home has it.

    held      parts that it may use, or has used within the window
    silent_s  since it last asked
    """

    cell: str
    held: int
    wanted: int
    silent_s: float

    @property
    def is_silent(self) -> bool:
        """Its share has lapsed; what it took of it may count yet."""
        return self.silent_s > LEASE_S


@dataclass(frozen=True, slots=True)
class Share:
    """Parts that a cell may use for LEASE_S, and those that are held for it in home until it asks again."""

    share: int
    held: int


def decide_share(
    cell: str, report: ShareReport, others: Iterable[ShareRow], *, cells: int, asking_s: float, turn: int = 0
) -> Share:
    """The share of a cell that asks, of what the others leave. Pure.

    A cell gives back what is more than its fair share when it asks itself, so another gets it at its own next look.

    cells      how many there are, those that never asked included
    asking_s   how long this cell has been asking without a break. At first it gets an equal part at most, and the
               silent are waited for: home may have been away for all, and they only be about to ask
    turn       whose turn it is where there are fewer requests than cells (`share_turn`)
    """
    counted = [row for row in others if not _is_over(row, asking_s)]
    wants = {row.cell: row.wanted for row in counted if not row.is_silent} | {cell: report.wanted}
    rounding = len(wants) if report.requests else 0  # such shares are rounded up
    free = WHOLE + rounding - sum(row.held for row in counted)
    most = WHOLE if asking_s > LEASE_S else _equal_part(report.requests, cells)
    share = max(0, min(fair_shares(wants, report.requests, turn)[cell], free, most))
    return Share(share, max(share, report.share, report.used))


def _is_over(row: ShareRow, asking_s: float) -> bool:
    return asking_s > LEASE_S and row.silent_s > LEASE_S + USED_S


def share_turn(now_s: float) -> int:
    return int(now_s // ROTATE_S)


def fair_shares(wants: Mapping[str, int], requests: int | None, turn: int = 0) -> dict[str, int]:
    """Parts for each: none gets more than it wants, and what one leaves the others have. Pure.

    Of few requests a minute each share is whole ones: a share of half a request would let none go. Those that are left
    over go to one more cell each, in turn.
    """
    if requests is None or requests >= WHOLE:
        return _level(wants, WHOLE)
    wanted = {name: -(-parts * requests // WHOLE) for name, parts in wants.items()}
    counts = _level(wanted, requests)
    left = requests - sum(counts.values())
    lacking = sorted(name for name, count in counts.items() if count < wanted[name])
    for i in range(min(left, len(lacking))):
        counts[lacking[(turn + i) % len(lacking)]] += 1
    # Rounded up, so that the script that rounds down has the same count.
    return {name: -(-count * WHOLE // requests) if count else 0 for name, count in counts.items()}


def _level(wants: Mapping[str, int], whole: int) -> dict[str, int]:
    """Who wants least is served first, and at most an equal part of what is left."""
    left = len(wants)
    for want in sorted(wants.values()):
        if want > whole // left:
            break
        whole, left = whole - want, left - 1
    level = whole // left if left else whole
    return {name: min(want, level) if left else want for name, want in wants.items()}


def share_without_home(report: ShareReport, cells: int, away_s: float) -> int | None:
    """What a cell goes on with that could not ask home for so long: an equal part at most. Pure.

    None: what it has holds yet. A cell that had less gets its equal part only when what the others may have used of
    theirs counts no more.
    """
    if away_s < LEASE_S - ASK_EVERY_S:
        return None
    equal = _equal_part(report.requests, cells)
    return equal if away_s > 2 * LEASE_S + USED_S else min(report.share, equal)


def _equal_part(requests: int | None, cells: int) -> int:
    """None where the limit has fewer requests than there are cells."""
    if requests is None or requests >= WHOLE:
        return WHOLE // cells
    return -(-(requests // cells) * WHOLE // requests)
