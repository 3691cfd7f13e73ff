"""A bulk: one verb for every turn that some words describe. What it is for, and the report of it."""

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
"""So many failures are listed; `failures` counts all."""


class BulkPlan(Wire):
    """What a bulk is to do.

    where     the filters of `Client.turns` in words, such as `brain=shop state=parked older=2h`
    dry_run   only count what it is for
    rate      turns a second
    most      of how many turns at most, the newest first
    reason    kept with each act; of a denial the model reads it
    by        who does it
    """

    verb: BulkVerb
    where: str
    dry_run: bool = False
    rate: float = 20.0
    most: int = MAX_BULK_TURNS
    reason: str = ""
    by: str = ""


class BulkFailure(Wire):
    """One turn for which it failed, and why."""

    turn_id: str
    why: str


class BulkReport(Wire):
    """How far a bulk is, or what came of it.

    state       `running`; `done`; `stopped`, by somebody or with its process; `failed`, `error` says why; `lost`: its
                process is gone. After the last three the same again does what is left
    matched     for how many turns it is; None while these are looked up
    kinds       how many of each kind these are, such as `parked of brain shop`
    done        turns with which it was done
    skipped     why nothing was to be done with others, and with how many
    failed      the first thousand turns with which it failed; `failures` counts all
    cells_away  cells that did not answer: their turns are missing
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
        """How many turns it has come to."""
        return self.done + sum(self.skipped.values()) + self.failures


def checked_verb(verb: object) -> BulkVerb:
    """Raises InvalidInput."""
    for known in BULK_VERBS:
        if verb == known:
            return known
    raise InvalidInput("verb", f"{verb!r} is not one of {', '.join(BULK_VERBS)}")


def checked_rate(rate: float) -> float:
    """Turns a second. Raises InvalidInput."""
    if not 0 < rate <= MAX_RATE:
        raise InvalidInput("rate", f"{rate:g} turns a second is not above 0 and at most {MAX_RATE:.0f}")
    return rate


def read_rate(rate: str) -> float:
    """Turns a second in words: `20/s`, or `20`. Raises InvalidInput."""
    try:
        number = float(rate.removesuffix("/s"))
    except ValueError:
        raise InvalidInput("rate", f"{rate!r} is not a number of turns a second, such as 20/s") from None
    return checked_rate(number)
