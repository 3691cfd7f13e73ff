"""Jobs, which are rows in SQL of work to do later, at least once and by one process at a time; and the ends of a try.

    pending ── claim ──► a try, under a lease ─┬─ done
       ▲                                       ├─ failed     due again after a back-off
       │                                       ├─ postponed  due again; the try does not count
       └─ revive, by a person's command ───────┴─ dead       the last try failed

Judgements and webhook deliveries are such rows, and so are finalizer steps that failed (`adapters/sql/jobs.py`). If a
process dies, its lease expires: the row is due then, and the try counts.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from brainq.contracts.status import WorkFailure, WorkOutcome
from brainq.runtime.leases import LeaseRenewer
from brainq.runtime.text.failures import failure_words

if TYPE_CHECKING:
    from brainq.adapters.sql.jobs import JobTable

JobKey = Mapping[str, object]
"""Identifies a row: the values of `JobTable.keys`."""
MAX_ERROR_CHARS = 2_000


def job_key(turn_id: str, name: str) -> JobKey:
    """Return the key of a judgement, by its judge's name, or of a finalizer step."""
    return {"turn": turn_id, "by": name}


def delivery_key(row: int) -> JobKey:
    """Return the key of a delivery."""
    return {"which": row}


@dataclass(frozen=True, slots=True)
class Backoff:
    """The waits between tries.

    first_s     before the second try; each further wait is `factor` times as long
    longest_s   no wait is longer, before chance changes it
    spread      the shortest and the longest share of the wait that chance may choose, so that tries do not coincide
    """

    first_s: float
    factor: float
    longest_s: float
    spread: tuple[float, float]

    def after_s(self, tries: int, chance: float | None = None) -> float:
        """Return the seconds from the end of try number `tries` to the next. `chance` is in [0, 1); None draws one."""
        least, most = self.spread
        drawn = random.random() if chance is None else chance
        return min(self.longest_s, self.first_s * self.factor ** (tries - 1)) * (least + (most - least) * drawn)


SOON = Backoff(first_s=0.5, factor=2.0, longest_s=60.0, spread=(0.5, 1.0))
"""The back-off for work of brainq and of brains: eight tries within about a minute and a half."""
MAX_TRIES = 8


class Postponed(Exception):
    """Raised by work that cannot be tried now. The try does not count; the row is due again after `after_s`."""

    def __init__(self, why: str, after_s: float, word: str = "postponed") -> None:
        super().__init__(why)
        self.after_s, self.word = after_s, word


class GivenUp(Exception):
    """Raised by work that no further try can do. The row is dead."""


class JobLost(Exception):
    """Raised for a try whose job was removed, or has a later try. Nothing that it wrote counts."""


class TryFailed(Exception):
    """Raised by work to choose the text of its failure. `kind` stands for the name of the exception's class."""

    def __init__(self, error: str, kind: str = "") -> None:
        super().__init__(error)
        self.kind = kind


@dataclass(eq=False, kw_only=True)
class JobRunner:
    """A runner of a claimed job: it runs one try, and records how the try ended.

    beats      renews leases while a try runs; None if a try takes less time than its lease
    failure    classifies a failed try for the Celery task that made it; None if no task did
    """

    rows: JobTable
    lease_s: float
    failure: WorkFailure | None = None
    backoff: Backoff = SOON
    max_tries: int = MAX_TRIES
    beats: LeaseRenewer | None = None

    def run(
        self,
        key: JobKey,
        tries: int,
        work: Callable[[], str],
        *,
        show: Callable[[Exception], str] = failure_words,
    ) -> str:
        """Run `work`, which settles its row itself and returns a word for the log.

        Returns that word; `failed` if the row is due again; `dead`; or the word of Postponed. `show` renders a failure
        for people. Raises SQL's errors; the row's lease then expires.
        """
        if self.beats is None:
            return self._try(key, tries, work, show)
        with self.beats.renew(lambda: "OK" if self.rows.hold(key, tries, self.lease_s) else "LOST", _ignore):
            return self._try(key, tries, work, show)

    def _try(self, key: JobKey, tries: int, work: Callable[[], str], show: Callable[[Exception], str]) -> str:
        if tries > self.max_tries:
            return self._end(key, tries, f"its worker died or lost its connection in each of {tries - 1} tries", None)
        again_after_s = None if tries >= self.max_tries else self.backoff.after_s(tries)
        try:
            return work()
        except Postponed as later:
            self.rows.postpone(key, tries, str(later)[:MAX_ERROR_CHARS], later.after_s)
            return later.word
        except GivenUp as end:
            return self._end(key, tries, str(end), None)
        except TryFailed as failed:
            return self._end(key, tries, str(failed), again_after_s, failed.kind)
        except Exception as failure:
            return self._end(key, tries, show(failure), again_after_s, type(failure).__name__)

    def _end(self, key: JobKey, tries: int, error: str, again_after_s: float | None, kind: str = "") -> str:
        self.rows.fail(key, tries, error[:MAX_ERROR_CHARS], again_after_s)
        return WorkOutcome("dead" if again_after_s is None else "failed", self.failure, kind)


def _ignore(word: str) -> None:
    """Do nothing when the lease is lost. The try goes on, but its result counts only if it comes first."""
