"""The rules for capacity after each script: who is live, that nobody waits while there is capacity, and whose turn it
is.

Turns that name a brain belong to CAPPED, the only brain with a cap.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.support.model.known import Known
from tests.support.model.rules import require

CAPPED = "only"  # the brain
# The last line of the model's reading: live | tenants in rotation | capped | sessions that wait for a brain | those of
# them that are in line | TENANT=sessions in line ... and, of those who stand aside from it, BRAIN TENANT=sessions ...
LOOK_ROOM = """
local room = {}
for i, key in ipairs({'live', 'tenants', 'capped'}) do
  room[i] = table.concat(redis.call('ZRANGE', 'bq:{room}:' .. key, 0, -1), ',')
end
room[4] = table.concat(redis.call('HKEYS', 'bq:{room}:for'), ',')
local following = {}
for _, key in ipairs(redis.call('KEYS', 'bq:{room}:next:*')) do
  following[#following + 1] = table.concat(redis.call('SMEMBERS', key), ',')
end
room[5] = table.concat(following, ',')
for _, key in ipairs(redis.call('KEYS', 'bq:{room}:line:*')) do
  room[#room + 1] = key:sub(#'bq:{room}:line:' + 1) .. '=' .. table.concat(redis.call('ZRANGE', key, 0, -1), ',')
end
for _, key in ipairs(redis.call('KEYS', 'bq:{room}:for:* *')) do
  room[#room + 1] = key:sub(#'bq:{room}:for:' + 1) .. '=' .. table.concat(redis.call('ZRANGE', key, 0, -1), ',')
end
"""


def tenant_of(session_id: str) -> str:
    head, colon, _ = session_id.partition(":")
    return head + colon if colon else ":"


@dataclass(slots=True)
class RoomRules:
    """The rules for capacity.

    size, share, cap: how many turns may be live in total, of a tenant, and of CAPPED (0 means many). The cap is the
        last one that a sweeper reported.
    is_known: whether the reported values are still valid. If not, there is capacity for all.
    """

    size: int
    share: int
    cap: int
    is_known: bool = True
    _lines: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    _mine: Counter[str] = field(default_factory=Counter[str])
    _stopped: set[str] = field(default_factory=set[str])
    _waiting: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    # Tenant that waits -> how often each other one has begun a turn since.
    _passed: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def check(
        self,
        name: str,
        line: str,
        turns: Sequence[Known],
        begun: Sequence[Known],
        *,
        went_on: bool,
        paused: set[str],
        given: Mapping[str, object],
    ) -> None:
        """Check a script.

        `begun` are turns that became active in it, and `went_on` is one that was parked and continued.
        """
        live, tenants, capped, choosers, following, lines = _read(line)
        held = [turn for turn in turns if turn.state == "active" and not turn.resumes_at]
        if name == "capacity_keep":
            self.is_known, self.cap = True, json.loads(str(given["caps"])).get(CAPPED, 0)
        elif not self.is_known:
            self.cap = 0
        places = {_place(turn) for turn in held}
        of_brains = {f" {turn.brain} {_place(turn)}" for turn in held if turn.brain}
        # Who began while the brain had no cap is not counted by it.
        counted = {place for place in live if place[0] == " "}
        fit = live - counted == places and (counted == of_brains if self.cap else counted <= of_brains)
        require(fit, f"{name}: others are in the room than are live", sorted(live), sorted(places))
        _stand_once(name, lines)
        in_line = {session for key, stand in lines.items() if " " not in key for session in stand}
        aside = {session for key, stand in lines.items() if " " in key for session in stand}
        stale = (following - in_line) | (choosers ^ (following | aside))
        require(not stale, f"{name}: who waits for a brain, and stands elsewhere, is counted", stale, lines)
        mine = Counter(tenant_of(turn.session_id) for turn in held)
        of_brain = sum(turn.brain == CAPPED for turn in held)
        is_full = bool(self.cap) and of_brain >= self.cap
        # What is to end begins past the room.
        if begun and self.is_known and not went_on and not given.get("lost_reason"):
            require(len(held) <= self.size, f"{name}: the room was passed", sorted(live), self.size)
            for turn in begun:
                tenant = tenant_of(turn.session_id)
                require(mine[tenant] <= self.share, f"{name}: a tenant passed its share", tenant, mine)
                fits = turn.brain != CAPPED or not self.cap or of_brain <= self.cap
                require(fits, f"{name}: a brain passed its cap", sorted(live))
        # Sessions whose next turn is of a brain that may have no further one.
        self._stopped = {session for session, turn in self._next(turns).items() if is_full and turn.brain}
        if self.is_known:
            self._nobody_waits_in_vain(name, turns, lines, len(held), mine, paused)
            self._in_turn(name, begun, turns, paused)
        waits = {tenant for tenant, sessions in lines.items() if sessions and " " not in tenant}
        require(waits <= set(tenants) | capped, f"{name}: a tenant waits outside the rotation", waits, tenants)
        for tenant in list(self._passed):
            if tenant not in waits or mine[tenant] >= self.share:
                del self._passed[tenant]
        self._lines, self._mine = lines, mine

    def line_up(self, waiting: Mapping[str, Sequence[str]]) -> None:
        """Set the turns of each session that wait (`waiting`), with the next one first."""
        self._waiting = waiting

    def _next(self, turns: Sequence[Known]) -> dict[str, Known]:
        by_id = {turn.turn_id: turn for turn in turns}
        return {session: by_id[waiting[0]] for session, waiting in self._waiting.items() if waiting}

    def _nobody_waits_in_vain(
        self,
        name: str,
        turns: Sequence[Known],
        lines: Mapping[str, list[str]],
        live: int,
        mine: Counter[str],
        paused: set[str],
    ) -> None:
        busy = {turn.session_id for turn in turns if turn.state in ("active", "parked")}
        for session in {turn.session_id for turn in turns if turn.state == "queued"} - busy - paused:
            tenant = tenant_of(session)
            stands = [*lines.get(tenant, ()), *lines.get(f"{CAPPED} {tenant}", ())]
            require(stands.count(session) == 1, f"{name}: a session waits outside the line", session, lines)
            is_full = live >= self.size or mine[tenant] >= self.share or session in self._stopped
            require(is_full, f"{name}: a session waits while there is room", session, live, mine)

    def _in_turn(self, name: str, begun: Sequence[Known], turns: Sequence[Known], paused: set[str]) -> None:
        before = {turn.session_id for turn in turns if turn.state == "queued"} | {turn.session_id for turn in begun}
        before -= self._stopped
        for turn in begun:
            tenant = tenant_of(turn.session_id)
            line = [session for session in self._lines.get(tenant, ()) if session in before and session not in paused]
            aside = turn.session_id in self._lines.get(f"{CAPPED} {tenant}", ())
            # One that comes into line in the same script may be of a higher priority; a low one never is.
            if line and not aside and (turn.session_id in line or turn.priority == "low"):
                require(line[0] == turn.session_id, f"{name}: not the first in line", turn.session_id, line)
                self._lines[tenant].remove(turn.session_id)
            for other, sessions in self._lines.items():
                ready = [session for session in sessions if session in before and session not in paused]
                if other != tenant and " " not in other and ready and self._mine[other] < self.share:
                    self._passed[other][tenant] += 1
                    twice = self._passed[other][tenant] > 1
                    require(not twice, f"{name}: {tenant} came twice while another waited", other)
            self._passed.pop(tenant, None)


def _stand_once(name: str, lines: Mapping[str, list[str]]) -> None:
    stand = Counter(session for sessions in lines.values() for session in sessions)
    twice = [session for session, times in stand.items() if times > 1]
    require(not twice, f"{name}: a session stands twice", twice, lines)


def _place(turn: Known) -> str:
    return (":" if ":" not in turn.session_id else "") + f"{turn.session_id} {turn.turn_id}"


def _read(line: str) -> tuple[set[str], list[str], set[str], set[str], set[str], dict[str, list[str]]]:
    live, tenants, capped, choosers, following, *lines = line.split("|")
    return (
        set(filter(None, live.split(","))),
        [name for name in tenants.split(",") if name],
        set(filter(None, capped.split(","))),
        set(filter(None, choosers.split(","))),
        set(filter(None, following.split(","))),
        {tenant: sessions.split(",") for tenant, _, sessions in (one.partition("=") for one in lines)},
    )
