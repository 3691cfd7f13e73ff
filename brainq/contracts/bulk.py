"""A bulk operation applies one verb to every turn that matches a filter. This module has its plan and its report."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, get_args

from brainq.contracts.base import Wire
from brainq.errors import InvalidInput

BulkVerb = Literal["cancel", "approve", "deny", "retry", "resubmit"]
BULK_VERBS: tuple[BulkVerb, ...] = get_args(BulkVerb)
BulkState = Literal["running", "done", "stopped", "failed", "lost"]
MAX_BULK_TURNS = 100_000
MAX_RATE = 1_000.0
MAX_WHERE_CHARS = 2_000
MAX_FAILURES = 1_000
"""How many failures a report lists. `failures` counts all of them."""


class BulkPlan(Wire):
    """The plan of a bulk operation.

    where: the filters of `Client.turns` in words, such as `brain=shop state=parked older=2h`.
    dry_run: whether to count the matching turns only.
    rate: turns per second.
    most: the largest number of turns, of which the newest are chosen.
    reason: recorded with each act. The model reads the reason of a denial.
    by: the person who runs the operation.
    """

    verb: BulkVerb
    where: str
    dry_run: bool = False
    rate: float = 20.0
    most: int = MAX_BULK_TURNS
    reason: str = ""
    by: str = ""


class BulkFailure(Wire):
    """One turn for which the verb failed, and why."""

    turn_id: str
    why: str


class BulkReport(Wire):
    """The progress or the result of a bulk operation.

    state: `running`; `done`; `stopped`, by a person or with its process; `failed`, for the reason in `error`; or
        `lost`, if its process is gone. After the last three, running the same operation again does what is left.
    matched: the number of matching turns. None while they are being looked up.
    kinds: the number of matching turns of each kind, such as `parked of brain shop`.
    done: turns for which the verb was carried out.
    skipped: turns for which there was nothing to do, as a number for each reason.
    failed: the first thousand turns for which the verb failed. `failures` counts all of them.
    cells_away: cells that did not answer. Their turns are missing.
    """

    id: str
    plan: BulkPlan
    state: BulkState = "running"
    matched: int | None = None
    kinds: dict[str, int] = {}
    done: int = 0
    skipped: dict[str, int] = {}
    failed: tuple[BulkFailure, ...] = ()
    failures: int = 0
    error: str = ""
    cells_away: tuple[str, ...] = ()
    started_at: datetime
    ended_at: datetime | None = None
    session_prefixes: tuple[str, ...] | None = None

    @property
    def tried(self) -> int:
        """The number of turns that the operation has processed so far."""
        return self.done + sum(self.skipped.values()) + self.failures


def checked_verb(verb: object) -> BulkVerb:
    """Return the verb. Raises InvalidInput if it is not a verb of bulk operations."""
    for known in BULK_VERBS:
        if verb == known:
            return known
    raise InvalidInput("verb", f"{verb!r} is not one of {', '.join(BULK_VERBS)}")


def checked_rate(rate: float) -> float:
    """Return the rate in turns per second. Raises InvalidInput if it is not above 0 and at most MAX_RATE."""
    if not 0 < rate <= MAX_RATE:
        raise InvalidInput("rate", f"{rate:g} turns a second is not above 0 and at most {MAX_RATE:.0f}")
    return rate


def read_rate(rate: str) -> float:
    """Return the turns per second in `20/s` or `20`. Raises InvalidInput."""
    try:
        number = float(rate.removesuffix("/s"))
    except ValueError:
        raise InvalidInput("rate", f"{rate!r} is not a number of turns a second, such as 20/s") from None
    return checked_rate(number)
