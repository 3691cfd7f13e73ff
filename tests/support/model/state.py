"""The state after each script, and the rules for its changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from brainq.adapters.redis.keys import Keys
from brainq.contracts.status import TRACE_MOVES, TURN_MOVES, TraceStatus, TurnState
from tests.support.model.bell_rules import LOOK_BELLS, BellRules
from tests.support.model.known import Known, read_line
from tests.support.model.people_rules import PeopleRules
from tests.support.model.room_rules import LOOK_ROOM, RoomRules
from tests.support.model.rules import require
from tests.support.model.thinker import MOST_CALLS

# One line a turn, one for the fleet's room, and one for the finalizer's doorbells: what the rules look at. Of a turn
# how every call stands, too: STATUS[:PARK][!ASK].
LOOK = f"""
local lines = {{}}
for i, key in ipairs(KEYS) do
  local turn = redis.call('HMGET', key, 'state', 'owner', 'fence', 'step', 'ending', 'cancel', 'parked_ms', 'holds',
    'resumes_at')
  if not turn[1] then
    lines[i] = ''
  else
    local used = redis.call('HMGET', key .. ':budget', 'steps_used', 'tool_calls_used', 'deadline')
    local line = {{turn[1], turn[2], turn[3], turn[5] or '', used[1] or '0', used[2] or '0', turn[6] or '',
      turn[7] or '0', used[3] or '', turn[8] or '', turn[9] or ''}}
    local fields = {{}}
    for step = 0, tonumber(turn[4]) do
      for call = 0, {MOST_CALLS - 1} do
        local name = 'c' .. step .. '-' .. call
        fields[#fields + 1] = name .. ':status'
        fields[#fields + 1] = name .. ':park'
        fields[#fields + 1] = name .. ':ask'
      end
    end
    local found = redis.call('HMGET', key .. ':trace', unpack(fields))
    for call = 1, #found, 3 do
      local token = found[call] or ''
      if token == 'parked' then token = token .. ':' .. found[call + 1] end
      if found[call + 2] then token = token .. '!' .. found[call + 2] end
      line[#line + 1] = token
    end
    lines[i] = table.concat(line, '|')
  end
end
{LOOK_ROOM}
lines[#lines + 1] = table.concat(room, '|')
{LOOK_BELLS}
lines[#lines + 1] = table.concat(rung, ' ')
return lines
"""

FENCED = {
    "turn_begin": "BEGUN",
    "turn_open": "OPENED",
    "aux_begin": "GO",
    "aux_commit": "COMMITTED",
    "history_compact": "COMPACTED",
    "step_begin": "GO",
    "step_delta": "OK",
    "step_retry": "OK",
    "step_commit": "COMMITTED CALL TURN",
    "turn_wait": "WAITS",
    "turn_end": "ENDED FINAL",
}
_TURN = {state.value: {move.value for move in moves} for state, moves in TURN_MOVES.items()}
_CALL = {status.value: {move.value for move in moves} for status, moves in TRACE_MOVES.items()}
_FIRST_TURN = {TurnState.QUEUED.value, TurnState.ACTIVE.value}
# Within one script a call is planned and then opened, so any of these may be the first to be seen.
_FIRST_CALL = {TraceStatus.PLANNED.value, *_CALL[TraceStatus.PLANNED.value]}
_ON_ITS_WAY = {"waiting", "dispatched", "running"}


class StateRules:
    """The comparison of each reading with the last one."""

    def __init__(self, keys: Keys, look_sha: str, room: RoomRules, bells: BellRules) -> None:
        self.room = room
        self._keys = keys
        self._sha = look_sha
        self.turns: dict[str, Known] = {}
        self.look: list[Any] = ["EVALSHA", look_sha, 0]
        self.people = PeopleRules(self.turns)
        self.bells = bells
        self.newly_cancelled: list[Known] = []
        self._lines: dict[str, list[str]] = defaultdict(list)  # session -> turns that wait, the next one first
        self.paused: set[str] = set()
        self._begun: list[Known] = []  # turns that began in the script
        self._went_on = False  # one that was parked did
        self._continued: tuple[Known, str] | None = None  # the call that the script claimed for its thread

    def watch(self, known: Known) -> None:
        self.turns[self._keys.turn(known.session_id, known.turn_id)] = known
        self.look = ["EVALSHA", self._sha, len(self.turns), *self.turns]

    def of(self, session_id: str, turn_id: str) -> Known:
        return self.turns[self._keys.turn(session_id, turn_id)]

    def check(self, name: str, given: Mapping[str, Any], reply: list[str], state: list[str], now_ms: int) -> None:
        """Raise BrokenRule if the script changed the state in a way that is not allowed."""
        if reply[0] in FENCED.get(name, "").split():
            before = self.turns[given["turn"]]
            held = (before.state, before.owner, before.fence)
            fits = held == ("active", given["owner"], str(given["fence"]))
            require(fits, f"{name} wrote without the fence", given["owner"], given["fence"], "but", *held)
        if name == "call_settle" and reply[0] in ("SETTLED", "CALL", "TURN"):
            status = self.turns[given["turn"]].status(given["call"])
            is_repeat = status == given["status"]  # whose first reply was lost
            require(status == "running" or is_repeat, "a call that does not run was settled", given["call"], status)
        if name == "turn_end" and reply[0] == "MORE":
            require(given["item"] != "", "a turn goes on, though no answer was given", given["turn"])
        self.people.check(name, given, reply, now_ms)
        if name == "session_resume" and reply[0] == "RESUMED":
            self.paused.discard(given["sid"])
        self.newly_cancelled = []
        self._went_on = False
        claimed = self.turns[given["turn"]] if (name, reply[0]) == ("turn_claim", "GO") else None
        self._continued = (self.turns[given["turn"]], reply[1]) if reply[0] == "CALL" else None
        moved = [
            (known, line) for known, line in zip(self.turns.values(), state[:-2], strict=True) if line != known.line
        ]
        # One script may end a turn that waits, and begin the one behind it.
        for known, line in sorted(moved, key=lambda pair: _begins(*pair)):
            self._moved(name, known, line, claimed=known is claimed)
        self._line_up(name, given, reply, state[-2])
        self.bells.check(name, reply, state[-1])

    def _line_up(self, name: str, given: Mapping[str, Any], reply: list[str], room: str) -> None:
        # One that goes before others of its session may begin at once, where those wait for room for their brain.
        if name == "turn_submit" and reply[0] == "QUEUED" and self.of(given["sid"], given["tid"]).state == "queued":
            place = 0 if given["mode"] in ("interrupt", "replace") else len(self._lines[given["sid"]])
            self._lines[given["sid"]].insert(place, given["tid"])
        if name == "session_pause" and reply[0] == "PAUSED":
            self.paused.add(given["session"].rpartition("{")[2].partition("}")[0])
        for session in {known.session_id for known in self._begun}:
            live = [
                known.turn_id
                for known in self.turns.values()
                if known.session_id == session and known.state in ("active", "parked")
            ]
            require(len(live) == 1, f"{name}: not one live turn", session, live)
        self.room.line_up(self._lines)
        self.room.check(
            name, room, list(self.turns.values()), self._begun, went_on=self._went_on, paused=self.paused, given=given
        )
        self._begun.clear()

    def _moved(self, name: str, known: Known, line: str, *, claimed: bool) -> None:
        where = f"{name} on {known.turn_id}"
        require(line != "", f"{where} lost the turn")
        new = read_line(known, line)
        if new.state != known.state:
            self._turn_moved(name, where, known, new)
        elif known.state == "closing" or not _TURN[known.state]:
            same = (new.owner, new.fence) == (known.owner, known.fence)
            require(same, f"{where}: a claim after its end", new.owner, new.fence)
        require(int(new.fence) >= int(known.fence or 0), f"{where}: the fence fell", known.fence, new.fence)
        require(new.steps <= known.max_steps, f"{where}: too many steps", new.steps, known.max_steps)
        paid = new.steps <= len(new.statuses) // MOST_CALLS
        require(paid, f"{where}: a step was paid for twice", new.steps, len(new.statuses) // MOST_CALLS)
        require(new.calls <= known.max_tool_calls, f"{where}: too many calls", new.calls, known.max_tool_calls)
        if known.deadline:
            moved, parked = new.deadline - known.deadline, new.parked_ms - known.parked_ms
            # The time of a turn without a reply begins when its first place comes; later it stands still meanwhile.
            has_begun = len(new.statuses) > MOST_CALLS
            had_place = claimed and known.stands
            waits = (had_place and (moved <= 0 or not has_begun)) or (name == "turn_wait" and moved >= 0)
            known.stands = name == "turn_wait" or (known.stands and not had_place)
            require((moved == parked or waits) and parked >= 0, f"{where}: the deadline moved otherwise", moved, parked)
        old = known.statuses + [""] * (len(new.statuses) - len(known.statuses))
        for place, (was, status) in enumerate(zip(old, new.statuses, strict=True)):
            if was != status:
                call = f"c{place // MOST_CALLS}-{place % MOST_CALLS}"
                # One script dispatches the call and claims it for its thread.
                seen = "dispatched" if status == "running" and self._continued == (known, call) else status
                legal = seen in (_CALL[was] if was else _FIRST_CALL)
                require(legal, f"{where}: no such move of a call", call, was, status)
                opened = known.cancel and was in ("planned", "parked") and status in ("waiting", "dispatched")
                require(not opened, f"{where}: a cancelled turn opened a call", call, was, status)
        self._parked(where, new)
        self.people.moved(name, where, known, new)
        if new.cancel and not known.cancel:
            self.newly_cancelled.append(known)
        known.take(new)

    def _turn_moved(self, name: str, where: str, known: Known, new: Known) -> None:
        legal = new.state in (_TURN[known.state] if known.state else _FIRST_TURN)
        require(legal, f"{where}: no such move of a turn", known.state, new.state)
        as_said = new.state not in _TURN["closing"] or new.state == new.ending
        require(as_said, f"{where} ended otherwise", new.state, new.ending)
        waiting = self._lines[known.session_id]
        if known.state == "queued":
            require(new.state == "closing" or waiting[:1] == [known.turn_id], f"{where}: out of order", waiting)
            waiting.remove(known.turn_id)
        if new.state == "active" and known.state in ("", "queued"):
            require(known.session_id not in self.paused, f"{where}: it began in a paused session")
            first = known.state == "queued" or known.goes_first or not waiting
            require(first, f"{where}: it went before others", waiting)
            self._begun.append(known)
        self._went_on = self._went_on or (known.state, new.state) == ("parked", "active")

    @staticmethod
    def _parked(where: str, new: Known) -> None:
        on_their_way = [status for status in new.statuses if status in _ON_ITS_WAY]
        parked = "parked" in new.statuses
        if new.state == "parked":
            fits = parked and not on_their_way
            require(fits, f"{where}: a parked turn has other work", new.statuses)
        elif new.state == "active" and not new.cancel:
            require(not parked or bool(on_their_way), f"{where}: all its calls are parked, but it is not", new.statuses)


def _begins(known: Known, line: str) -> bool:
    return known.state == "queued" and line != "" and read_line(known, line).state == "active"
