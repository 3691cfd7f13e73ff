"""Reading the state after each script, and what may not have happened to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from brainq.contracts.status import TRACE_MOVES, TURN_MOVES, TraceStatus, TurnState
from brainq.state.keys import Keys
from tests.support.model.rules import require
from tests.support.model.thinker import MOST_CALLS

# One line a turn: what the rules look at, and the status of every call.
LOOK = f"""
local lines = {{}}
for i, key in ipairs(KEYS) do
  local turn = redis.call('HMGET', key, 'state', 'owner', 'fence', 'step', 'ending')
  if not turn[1] then
    lines[i] = ''
  else
    local used = redis.call('HMGET', key .. ':budget', 'steps_used', 'tool_calls_used')
    local line = {{turn[1], turn[2], turn[3], turn[5] or '', used[1] or '0', used[2] or '0'}}
    local fields = {{}}
    for step = 0, tonumber(turn[4]) do
      for call = 0, {MOST_CALLS - 1} do fields[#fields + 1] = 'c' .. step .. '-' .. call .. ':status' end
    end
    if #fields > 0 then
      local statuses = redis.call('HMGET', key .. ':trace', unpack(fields))
      for _, status in ipairs(statuses) do line[#line + 1] = status or '' end
    end
    lines[i] = table.concat(line, '|')
  end
end
return lines
"""

FENCED = {
    "turn_begin": "BEGUN",
    "turn_open": "OPENED",
    "aside_begin": "GO",
    "aside_commit": "COMMITTED",
    "history_compact": "COMPACTED",
    "step_begin": "GO",
    "step_delta": "OK",
    "step_commit": "COMMITTED",
    "turn_end": "ENDED",
}
_TURN = {state.value: {move.value for move in moves} for state, moves in TURN_MOVES.items()}
_CALL = {status.value: {move.value for move in moves} for status, moves in TRACE_MOVES.items()}
_FIRST_TURN = {TurnState.QUEUED.value, TurnState.ACTIVE.value}
# Within one script a call is planned and then opened, so any of these may be the first to be seen.
_FIRST_CALL = {TraceStatus.PLANNED.value, *_CALL[TraceStatus.PLANNED.value]}


@dataclass(slots=True)
class Known:
    """A turn as it was last read."""

    session_id: str
    turn_id: str
    max_steps: int
    max_tool_calls: int
    line: str = ""
    state: str = ""
    owner: str = ""
    fence: str = ""
    statuses: list[str] = field(default_factory=list[str])


class StateRules:
    """Compares each reading with the last one."""

    def __init__(self, keys: Keys, look_sha: str) -> None:
        self._keys = keys
        self._sha = look_sha
        self.turns: dict[str, Known] = {}
        self.look: list[Any] = ["EVALSHA", look_sha, 0]

    def watch(self, known: Known) -> None:
        self.turns[self._keys.turn(known.session_id, known.turn_id)] = known
        self.look = ["EVALSHA", self._sha, len(self.turns), *self.turns]

    def check(self, name: str, given: Mapping[str, Any], reply: list[str], state: list[str]) -> None:
        """Raises BrokenRule when the script did what it may not."""
        if FENCED.get(name) == reply[0]:
            before = self.turns[given["turn"]]
            held = (before.state, before.owner, before.fence)
            fits = held == ("active", given["owner"], str(given["fence"]))
            require(fits, f"{name} wrote without the fence", given["owner"], given["fence"], "but", *held)
        if name == "call_settle" and reply[0] == "SETTLED":
            status = _status(self.turns[given["turn"]], given["call"])
            require(status == "running", "a call that does not run was settled", given["call"], status)
        for known, line in zip(self.turns.values(), state, strict=True):
            if line != known.line:
                self._moved(name, known, line)

    def _moved(self, name: str, known: Known, line: str) -> None:
        where = f"{name} on {known.turn_id}"
        require(line != "", f"{where} lost the turn")
        state, owner, fence, ending, steps, calls, *statuses = line.split("|")
        if state != known.state:
            legal = state in (_TURN[known.state] if known.state else _FIRST_TURN)
            require(legal, f"{where}: no such move of a turn", known.state, state)
            require(
                state not in _TURN["closing"] or state == ending, f"{where} ended otherwise", state, ending
            )
        elif known.state == "closing" or not _TURN[known.state]:
            require(
                owner == known.owner and fence == known.fence, f"{where}: a claim after its end", owner, fence
            )
        require(int(fence) >= int(known.fence or 0), f"{where}: the fence fell", known.fence, fence)
        require(int(steps) <= known.max_steps, f"{where}: too many steps", steps, known.max_steps)
        paid = int(steps) <= len(statuses) // MOST_CALLS
        require(paid, f"{where}: a step was paid for twice", steps, len(statuses) // MOST_CALLS)
        require(int(calls) <= known.max_tool_calls, f"{where}: too many calls", calls, known.max_tool_calls)
        old = known.statuses + [""] * (len(statuses) - len(known.statuses))
        for place, (was, status) in enumerate(zip(old, statuses, strict=True)):
            if was != status:
                legal = status in (_CALL[was] if was else _FIRST_CALL)
                call = f"c{place // MOST_CALLS}-{place % MOST_CALLS}"
                require(legal, f"{where}: no such move of a call", call, was, status)
        known.line, known.state, known.owner, known.fence, known.statuses = (
            line,
            state,
            owner,
            fence,
            statuses,
        )


def _status(known: Known, call: str) -> str:
    step, index = call[1:].split("-")
    place = int(step) * MOST_CALLS + int(index)
    return known.statuses[place] if place < len(known.statuses) else ""
