"""The finalizer's doorbells after each script: while a turn's bell waits, the sweeper rings no other for it, and the
first list is no longer than it may be, and no shorter while turns wait for a place in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from brainq.broker.names import FINALIZE_QUEUE, queue_keys
from brainq.settings import Settings
from brainq.state.keys import Keys
from tests.support.model.rules import require

_KEYS = Keys(Settings(redis_url=None).prefix)
_FIRST, _LATER = queue_keys(Settings(redis_url=None), FINALIZE_QUEUE)
# The last line of the model's reading: a word for each doorbell that waits, `LIST/TURN.final.STEP`, one for each turn
# that is over, `TURN=STEP/OWNER/RETRY AT/RUNG AT/LIST`, and `LENGTH+WAITING` of the first list.
LOOK_BELLS = f"""
local rung = {{redis.call('LLEN', '{_FIRST}') .. '+' .. redis.call('ZCARD', '{_KEYS.finals_queue}')}}
for list, key in pairs({{finalize = '{_FIRST}', finalize_later = '{_LATER}'}}) do
  for _, bell in ipairs(redis.call('LRANGE', key, 0, -1)) do
    local turn, step = bell:match('"id":%s*"([^".]+)%.final%.([^".]+)')
    rung[#rung + 1] = list .. '/' .. turn .. '.final.' .. step
  end
end
for _, key in ipairs(KEYS) do
  local t = redis.call('HMGET', key, 'fin_step', 'fin_owner', 'fin_retry_at', 'fin_rung', 'fin_bell')
  if t[1] and t[1] ~= '' then
    local list = (t[5] or ''):match('^%S+') or ''
    rung[#rung + 1] = key:match('[^:]+$') .. '='
      .. table.concat({{t[1], t[2] or '', t[3] or '0', t[4] or '', list}}, '/')
  end
end
"""


@dataclass(frozen=True, slots=True)
class _Chain:
    step: str
    owner: str
    retry_at: str
    rung_at: str
    bell_in: str


class BellRules:
    """A bell that waits is not taken for lost, whatever happens to its turn meanwhile.

    `are_copied`: somebody answered a bell that is still there, or was answered before. What such a one claims says
    nothing of those that wait, and copies of these may be rung.
    """

    def __init__(self, in_list: int) -> None:
        """`in_list`: how many doorbells may lie in the first list."""
        self.are_copied = False
        self._in_list = in_list
        self._bells: set[str] = set()
        self._chains: dict[str, _Chain] = {}

    def taken(self, args: Sequence[Any]) -> None:
        """A worker took this bell, or it was lost."""
        self._bells -= {f"{list_}/{args[1]}.final.{args[2]}" for list_ in ("finalize", "finalize_later")}

    def check(self, name: str, line: str) -> None:
        first, *words = line.split()
        length, waiting = map(int, first.split("+"))
        require(length <= self._in_list, "the finalizer's first list is longer than it may be", first)
        if name == "finalize_claim":
            full = length == self._in_list or not waiting
            require(full, "turns wait, though the finalizer's first list has room", first)
        bells = {word for word in words if "=" not in word}
        chains = {
            turn: _Chain(*said.split("/"))
            for turn, is_turn, said in (word.partition("=") for word in words)
            if is_turn
        }
        if name == "turn_sweep" and not self.are_copied:
            for turn, before in self._chains.items():
                self._rung_in_vain(turn, before, chains.get(turn, before))
        self._bells, self._chains = bells, chains

    def _rung_in_vain(self, turn: str, before: _Chain, now: _Chain) -> None:
        waits = f"{before.bell_in}/{turn}.final.{before.step}" in self._bells
        is_due = before.owner != "" or before.retry_at != "0"
        rung = now.rung_at != before.rung_at
        require(is_due or not waits or not rung, "rung again, though the finalizer's doorbell waits", turn)
