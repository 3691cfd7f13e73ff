"""The rules for doorbells after each script.

While a turn's bell waits for the finalizer, the sweeper rings no other for it. The lists for which tenants take turns
are as short as they may be, and have no free place while a bell waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from brainq.adapters.celery.names import FINALIZE_QUEUE, TAKEN_IN_TURN, queue_key, queue_keys
from brainq.adapters.redis.keys import Keys
from brainq.runtime.settings.deployment import Settings
from tests.support.model.rules import require

_SETTINGS = Settings(redis_url=None)
_FIRST, _LATER = queue_keys(_SETTINGS, FINALIZE_QUEUE)
_TAKEN_IN_TURN = ", ".join(
    f"{{'{word}', '{queue_key(_SETTINGS, queue)}', '{Keys(_SETTINGS.prefix).tenant_queue(word)}'}}"
    for queue, word in TAKEN_IN_TURN.items()
)
# The last line of the model's reading: first `LENGTH+WAITING+IN BOTH` of each list that tenants take turns for. Then a
# word for each doorbell that waits, `LIST/TURN.final.STEP`, and one for each turn that is over,
# `TURN=STEP/OWNER/RETRY AT/RUNG AT/LIST`.
LOOK_BELLS = f"""
local rung = {{}}
for _, each in ipairs({{{_TAKEN_IN_TURN}}}) do
  local word, list, queue = unpack(each)
  local waiting, both = redis.call('ZRANGE', queue, 0, -1), 0
  if #waiting > 0 then
    local lies, at = {{}}, {{}}
    for _, key in ipairs(KEYS) do
      local chain = redis.call('HMGET', key, 'fin_step', 'fin_fence')
      at[key:match('[^:]+$')] = (chain[1] or '') .. '.' .. (chain[2] or '')
    end
    for _, bell in ipairs(redis.call('LRANGE', list, 0, -1)) do
      local turn, call, step = bell:match('"id":%s*"([^".]+)%.([^".]+)%.?([^"]*)')
      -- One of an earlier step or fence is a copy, rung for while a worker had the first in its hands.
      if call ~= 'final' or step == at[turn] then lies[turn .. (call == 'final' and '' or ' ' .. call)] = true end
    end
    for _, member in ipairs(waiting) do both = both + (lies[member:match(' (.*)$')] and 1 or 0) end
  end
  rung[#rung + 1] = redis.call('LLEN', list) .. '+' .. #waiting .. '+' .. both
end
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
    """The rule that a waiting bell is never taken for lost, whatever happens to its turn.

    are_copied: whether a bell was answered that is still in its list, or was answered before. The claim of such a bell
        shows nothing about waiting bells, and copies of these may be rung.
    """

    def __init__(self, places: Callable[[str], int]) -> None:
        """Take the number of doorbells that a list may hold (`places`), by the word of the list."""
        self.are_copied = False
        self._places = places
        self._bells: set[str] = set()
        self._chains: dict[str, _Chain] = {}

    def taken(self, args: Sequence[Any]) -> None:
        """Note that a worker took this bell, or that it was lost."""
        self._bells -= {f"{list_}/{args[1]}.final.{args[2]}" for list_ in ("finalize", "finalize_later")}

    def check(self, name: str, reply: Sequence[str], line: str) -> None:
        words = line.split()
        claimed = "finalize" if name == "finalize_claim" else ""
        if name == "call_claim" and reply[0] == "GO":
            claimed = reply[4]
        for word, counts in zip(TAKEN_IN_TURN.values(), words, strict=False):
            self._is_short(word, *map(int, counts.split("+")), claimed=word == claimed)
        words = words[len(TAKEN_IN_TURN) :]
        bells = {word for word in words if "=" not in word}
        chains = {
            turn: _Chain(*said.split("/")) for turn, is_turn, said in (word.partition("=") for word in words) if is_turn
        }
        if name == "turn_sweep" and not self.are_copied:
            for turn, before in self._chains.items():
                self._rung_in_vain(turn, before, chains.get(turn, before))
        self._bells, self._chains = bells, chains

    def _is_short(self, word: str, length: int, waiting: int, both: int, *, claimed: bool) -> None:
        places = self._places(word)
        require(length <= places, "a list is longer than it may be", word, length)
        full = length == places or not waiting
        require(full or not claimed, "somebody waits, though the list has room", word, length, waiting)
        require(self.are_copied or not both, "who waits was rung for out of turn", word, both)

    def _rung_in_vain(self, turn: str, before: _Chain, now: _Chain) -> None:
        waits = f"{before.bell_in}/{turn}.final.{before.step}" in self._bells
        is_due = before.owner != "" or before.retry_at != "0"
        rung = now.rung_at != before.rung_at
        require(is_due or not waits or not rung, "rung again, though the finalizer's doorbell waits", turn)
