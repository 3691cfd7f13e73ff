"""Verdicts on a fault's turns: brainq's outcome of each is compared with the effect server's log."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from brainq import Ending, TraceStatus, Unreachable
from brainq.contracts.rows import CallRow
from lab.bench.outcomes import percentile
from lab.faults.load import TIMEOUT_S
from lab.faults.shop import WRITES
from lab.faults.stage import Stage

ENDS_WITHIN_S = TIMEOUT_S + 30.0
"""Promise P2: a turn ends no later than 30 s after its deadline."""


@dataclass
class Verdict:
    """A row of the table.

    times      how often it was to fire, and `fired` how often each time was seen to
    lost       turns without an ending, and writes that never ran though brainq says so or completed without a word
    doubled    writes that ran twice
    otherwise  turns that ended, but not as completed, by their ending; and writes that did not run, as the model reads
    unknown    writes of which the model reads that they may have run
    """

    name: str
    times: int = 0
    fired: list[int] = field(default_factory=list[int])
    turns: int = 0
    lost: list[str] = field(default_factory=list[str])
    doubled: list[str] = field(default_factory=list[str])
    otherwise: Counter[str] = field(default_factory=Counter[str])
    unknown: int = 0
    recovery_s: list[float] = field(default_factory=list[float])
    why_not: str = ""
    failure: str = ""

    @property
    def has_fired(self) -> bool:
        return self.times > 0 and len(self.fired) == self.times and all(self.fired)

    @property
    def is_right(self) -> bool:
        """Return whether the fault fired each time and lost or doubled nothing, or cannot be injected here."""
        if self.why_not:
            return True
        return self.has_fired and self.turns > 0 and not (self.lost or self.doubled or self.failure)

    @property
    def not_completed(self) -> list[str]:
        """The endings of turns that ended otherwise; of a write that did not run the model read, and it went on."""
        return [ending for ending in self.otherwise if not ending.startswith("write ")]

    def spread(self) -> tuple[float, float] | None:
        """p50 and the most of the recovery, seconds."""
        return (percentile(self.recovery_s, 50), max(self.recovery_s)) if self.recovery_s else None


@dataclass(frozen=True, slots=True)
class TurnWord:
    """What brainq says of a turn. `ending`: None where it has none, with its reason where it is not
    completed. `calls`: how its writes ended, by tool."""

    turn: str
    ending: str | None
    calls: Mapping[str, tuple[str, ...]]


def judge(verdict: Verdict, words: Iterable[TurnWord], written: Mapping[str, int]) -> None:
    """Add these turns to the verdict, by `words` and the server's counts of each key."""
    for word in words:
        verdict.turns += 1
        if word.ending is None:
            verdict.lost.append(f"{word.turn} has not ended")
        elif word.ending != Ending.COMPLETED:
            verdict.otherwise[word.ending] += 1
        for what in WRITES:
            kinds, ran = word.calls.get(what, ()), written.get(f"{word.turn} {what}", 0)
            verdict.unknown += "unknown" in kinds
            if ran > 1:
                verdict.doubled.append(f"{word.turn} {what} ran {ran} times")
            elif ran == 0 and ("success" in kinds or (word.ending == Ending.COMPLETED and not kinds)):
                verdict.lost.append(f"{word.turn} {what} never ran")
            elif ran == 0 and word.ending == Ending.COMPLETED and "unknown" not in kinds:
                verdict.otherwise[f"write {kinds[-1]}"] += 1  # and the model was told so


def words_of(stage: Stage, turns: Iterable[str]) -> list[TurnWord]:
    """Wait for the results of the turns, for as long as brainq promises."""
    end = time.monotonic() + ENDS_WITHIN_S
    return [TurnWord(turn, _ending(stage, turn, end), _calls(stage, turn)) for turn in turns]


def _ending(stage: Stage, turn: str, end: float) -> str | None:
    while True:
        try:
            result = stage.client.handle(turn).result(max(1.0, end - time.monotonic()))
            is_whole = result.ending == Ending.COMPLETED
            return str(result.ending) if is_whole else f"{result.ending}: {result.stop_reason}"
        except TimeoutError:
            return None
        except Unreachable:
            if time.monotonic() > end:
                return None
            time.sleep(0.1)


def _calls(stage: Stage, turn: str) -> dict[str, tuple[str, ...]]:
    """Return the outcome of each write that the model read in Redis. If Redis has lost the turn, SQL's is returned."""
    trace = stage.wiring.state.calls.trace(stage.client.handle(turn).session_id, turn)
    ended = [(entry.tool, _told(entry.status)) for entry in trace]
    ended = ended or [(row.tool, _kind(row)) for row in stage.wiring.store.calls.of_turn(turn)]
    return {what: tuple(kind for tool, kind in ended if tool == what) for what in WRITES}


def _told(status: TraceStatus) -> str:
    return "success" if status is TraceStatus.COMPLETED else str(status)


def _kind(row: CallRow) -> str:
    """Return how the call ended. In an ended turn, an intent without an end is one whose worker was lost."""
    return row.outcome_kind or ("unknown" if row.state == "intent" else row.state)
