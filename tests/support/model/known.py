"""A turn as the model last read it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tests.support.model.thinker import MOST_CALLS


@dataclass(slots=True)
class Known:
    """A turn's facts. `statuses`, `parks` and `asks` have one entry for each call, in the order of steps and places."""

    session_id: str
    turn_id: str
    max_steps: int
    max_tool_calls: int
    priority: str = "normal"
    brain: str = ""
    goes_first: bool = False
    stands: bool = False  # it waits for its model's limit
    line: str = ""
    state: str = ""
    owner: str = ""
    fence: str = ""
    ending: str = ""
    steps: int = 0
    calls: int = 0
    cancel: bool = False
    parked_ms: int = 0
    deadline: int = 0
    holds: str = ""
    resumes_at: str = ""
    statuses: list[str] = field(default_factory=list[str])
    parks: list[str] = field(default_factory=list[str])
    asks: list[str] = field(default_factory=list[str])

    def take(self, new: Known) -> None:
        """Take over all values of `new`."""
        for name in _READ:
            setattr(self, name, getattr(new, name))

    def status(self, call: str) -> str:
        return _at(self.statuses, call)

    def ask(self, call: str) -> str:
        return _at(self.asks, call)

    def standing(self) -> dict[str, dict[str, Any]]:
        """Return its holds by id, including those whose time is up."""
        return json.loads(self.holds) if self.holds else {}

    def calls_that(self, status: str, *, park: str = "", ask: str = "") -> list[str]:
        """Return the ids of its calls with this status, park and approval. "" matches any."""
        return [
            f"c{place // MOST_CALLS}-{place % MOST_CALLS}"
            for place, found in enumerate(self.statuses)
            if status in ("", found) and park in ("", self.parks[place]) and ask in ("", self.asks[place])
        ]


_READ = (
    *("line", "state", "owner", "fence", "ending", "steps", "calls", "cancel", "parked_ms", "deadline"),
    *("holds", "resumes_at", "statuses", "parks", "asks"),
)


def read_line(known: Known, line: str) -> Known:
    """Return the turn of a line of LOOK."""
    head, tokens = line.split("|")[:11], line.split("|")[11:]
    state, owner, fence, ending, steps, calls, cancel, parked_ms, deadline, holds, resumes_at = head
    new = Known(known.session_id, known.turn_id, known.max_steps, known.max_tool_calls)
    new.line, new.state, new.owner, new.fence, new.ending = line, state, owner, fence, ending
    new.steps, new.calls, new.cancel, new.holds = int(steps), int(calls), cancel == "1", holds
    new.resumes_at = resumes_at
    new.parked_ms, new.deadline = int(parked_ms), int(deadline or 0)
    for token in tokens:
        stands, _, ask = token.partition("!")
        status, _, park = stands.partition(":")
        new.statuses.append(status)
        new.parks.append(park)
        new.asks.append(ask)
    return new


def _at(values: list[str], call: str) -> str:
    step, index = call[1:].split("-")
    place = int(step) * MOST_CALLS + int(index)
    return values[place] if place < len(values) else ""
