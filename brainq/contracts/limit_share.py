"""Shares of a model's limit: how much each of several cells may use, as the home cell's SQL decides.

A share is counted in parts of the limit, which has WHOLE parts. The parts that cells may use, or have used within the
service's window, never exceed WHOLE together, with two exceptions. A request that is larger than its share is sent when
its cell uses nothing else. And a cell that cannot reach the home cell, while others can, continues with at most an
equal part, which the others may have been given by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

WHOLE = 1_000_000
LEASE_S = 15.0
"""How long a share lasts. It is requested again every few seconds."""
ASK_EVERY_S = 5.0
USED_S = 65.0
"""How long usage counts at the service, in seconds: a minute, and the time that a request needs to arrive."""
HEADROOM = 2  # a cell that uses its share without waiting gets twice what it uses, so that more requests find room
ROTATE_S = 180.0  # how long one cell has the extra request, if a limit has fewer requests than cells


@dataclass(frozen=True, slots=True)
class ShareReport:
    """The usage of a model as one cell's Redis reports it.

    mark: grows with each report. A decision about an earlier report is not stored.
    share: the parts that the cell may use now.
    used: the parts that count within the window.
    waits: whether requests wait.
    requests: the limit per minute, the smaller of the configured and the learned one. None if only tokens are limited,
        or nothing is.
    """

    model: str
    mark: int
    share: int
    used: int
    waits: bool
    requests: int | None = None

    @property
    def wanted(self) -> int:
        """The parts that the cell needs: all if requests wait, and none if nothing is used."""
        if self.waits:
            return WHOLE
        return min(WHOLE, self.used * HEADROOM)

    @property
    def is_idle(self) -> bool:
        return not (self.share or self.used or self.waits)


@dataclass(frozen=True, slots=True)
class ShareRow:
    """The share of one cell in a model's limit, as the home cell records it.

    held: the parts that the cell may use, or has used within the window.
    silent_s: the seconds since its last report.
    """

    cell: str
    held: int
    wanted: int
    silent_s: float

    @property
    def is_silent(self) -> bool:
        """Whether its share has lapsed. The parts that it used may still count."""
        return self.silent_s > LEASE_S


@dataclass(frozen=True, slots=True)
class Share:
    """The parts that a cell may use for LEASE_S, and the parts (`held`) that stay reserved for it until its next
    report."""

    share: int
    held: int


def decide_share(
    cell: str, report: ShareReport, others: Iterable[ShareRow], *, cells: int, asking_s: float, turn: int = 0
) -> Share:
    """Return the share of a reporting cell. It is limited by what the other cells leave.

    A cell gives up what exceeds its fair share when it reports, and another cell gets it when that one reports next.

    cells: the number of all cells, including those that never reported.
    asking_s: how long this cell has been reporting without a break. In the beginning it gets at most an equal part, and
        the parts of silent cells stay reserved: the home cell may have been down for all cells, and they may be about
        to report.
    turn: selects the cells that get one more request if there are fewer requests than cells (`share_turn`).
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
    """Return the parts for each cell. No cell gets more than it needs, and what one leaves goes to the others.

    If a limit has few requests per minute, shares are whole requests: half a request would allow none. The remaining
    requests go to one more cell each, in turn.
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
    """Return the amount for each name, if those that need least come first and get at most an equal part of the
    rest."""
    left = len(wants)
    for want in sorted(wants.values()):
        if want > whole // left:
            break
        whole, left = whole - want, left - 1
    level = whole // left if left else whole
    return {name: min(want, level) if left else want for name, want in wants.items()}


def share_without_home(report: ShareReport, cells: int, away_s: float) -> int | None:
    """Return the share of a cell that has not reached the home cell for this long: at most an equal part.

    Returns None while its present share lasts. A cell with a smaller share gets its equal part only once the usage of
    the others has expired.
    """
    if away_s < LEASE_S - ASK_EVERY_S:
        return None
    equal = _equal_part(report.requests, cells)
    return equal if away_s > 2 * LEASE_S + USED_S else min(report.share, equal)


def _equal_part(requests: int | None, cells: int) -> int:
    """Return an equal part. It is 0 if the limit has fewer requests than there are cells."""
    if requests is None or requests >= WHOLE:
        return WHOLE // cells
    return -(-(requests // cells) * WHOLE // requests)
