"""Whether a session came out as it was recorded, told from the airline's own database."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from brainq.contracts.call import ToolTraceEntry
from brainq.contracts.status import Ending, TraceStatus
from brainq.contracts.turn import TurnResult
from examples.airline.database import AirlineDatabase, Write
from examples.airline.model import steps_of
from examples.airline.recorded import RecordedCall, RecordedSession


@dataclass(frozen=True, slots=True)
class Played:
    """A session as brainq played it: one result a turn, and the traces of all calls."""

    session: RecordedSession
    results: tuple[TurnResult, ...]
    traces: tuple[ToolTraceEntry, ...]

    @property
    def unknown(self) -> int:
        return sum(trace.status is TraceStatus.UNKNOWN for trace in self.traces)


@dataclass(slots=True)
class Checked:
    """The verdict on one session.

    problems   what is wrong, the first difference first; empty: as recorded
    unknown    calls of which nobody knows how they ended; such a session is not held to its hash
    doubled    writes that were done more than once
    repeats    writes that were asked for again, and answered from what was noted
    """

    session: RecordedSession
    problems: list[str] = field(default_factory=list[str])
    unknown: int = 0
    doubled: int = 0
    repeats: int = 0


def check(played: Played, database: AirlineDatabase, *, idempotent: bool) -> Checked:
    """Hold one session to its recording."""
    session = played.session
    checked = Checked(session, unknown=played.unknown)
    for number, result in enumerate(played.results, 1):
        if result.ending is not Ending.COMPLETED:
            checked.problems.append(f"turn {session.turn_id(number)} {result.ending}: {result.error or result.text}")
        elif (text := steps_of(session.turns[number - 1])[-1].text).strip() and result.text != text:
            checked.problems.append(
                f"turn {session.turn_id(number)} said {result.text[:80]!r}, recorded was {text[:80]!r}"
            )
    writes = database.writes(session.session_id)
    checked.repeats = sum(write.repeats for write in writes)
    times = Counter(write.key for write in writes)
    checked.doubled = sum(times[key] - 1 for key in times)
    checked.problems += [f"write {key} was done {times[key]} times" for key in times if times[key] > 1]
    if checked.unknown and idempotent:
        checked.problems.append(f"{checked.unknown} calls are unknown, though every write tool is idempotent")
    if not checked.unknown:
        if difference := _first_difference(session.writes, writes):
            checked.problems.append(difference)
        if (ends_on := database.sha256(session.session_id)) != session.db_sha256:
            checked.problems.append(f"its database ends on {ends_on[:12]}, recorded was {session.db_sha256[:12]}")
    return checked


def _first_difference(expected: Sequence[tuple[str, RecordedCall]], writes: Sequence[Write]) -> str | None:
    wanted = [_shown(key, call.tool, call.arguments) for key, call in expected]
    done = [_shown(write.key, write.tool, write.arguments) for write in writes]
    for number in range(max(len(wanted), len(done))):
        want = wanted[number] if number < len(wanted) else "nothing"
        did = done[number] if number < len(done) else "nothing"
        if want != did:
            return f"write {number + 1} is {did}, recorded was {want}"
    return None


def _shown(key: str, tool: str, arguments: object) -> str:
    return f"{key} {tool} {json.dumps(arguments, sort_keys=True)}"
