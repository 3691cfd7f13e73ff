"""The broker's lists, as an unreliable broker would serve them."""

from __future__ import annotations

import json
from random import Random
from typing import Any, cast

from brainq.adapters.celery.names import ALL_QUEUES, queue_key, queue_keys
from brainq.adapters.redis.keys import Keys
from brainq.runtime.settings.deployment import Settings
from tests.support.model.client import ModelClient

_POP = """
for _, queue in ipairs(KEYS) do
  local bell = ARGV[1] == 'copy' and redis.call('LINDEX', queue, -1) or ARGV[1] ~= 'copy' and redis.call('RPOP', queue)
  if bell then return bell end
end
return ''
"""
_POP_ALL = """
local bells = {}
for _, queue in ipairs(KEYS) do
  for _, bell in ipairs(redis.call('LRANGE', queue, 0, -1)) do bells[#bells + 1] = bell end
  redis.call('DEL', queue)
end
return bells
"""


class Bells:
    """A taker of doorbells from the queues, in any order of the queues."""

    def __init__(self, client: ModelClient, settings: Settings) -> None:
        self.keys = Keys(settings.key_prefix)
        self._client = client
        self._settings = settings
        self._queues = [key for queue in ALL_QUEUES for key in queue_keys(settings, queue)]
        self._pop, self._pop_all = client.many([("SCRIPT", "LOAD", _POP), ("SCRIPT", "LOAD", _POP_ALL)])

    def pop(self, rng: Random, how: str = "pop", *, without: str = "") -> str:
        """Return the oldest bell of some queue except `without`, or "". `how="copy"` leaves it in the queue."""
        queues = rng.sample(self._queues, len(self._queues))
        if without:
            queues = [key for key in queues if without not in key]
        return cast(str, self._client.many([("EVALSHA", self._pop, len(queues), *queues, how)])[0])

    def pop_all(self) -> list[str]:
        """Return and remove every bell of every queue."""
        return cast(list[str], self._client.many([("EVALSHA", self._pop_all, len(self._queues), *self._queues)])[0])

    @staticmethod
    def read(bell: str) -> tuple[str, list[Any]]:
        """Return the task name and the arguments of a bell."""
        message = json.loads(bell)
        return message["headers"]["task"], json.loads(message["body"])[0]

    def waiting(self, queue: str, word: str) -> tuple[list[str], list[str]]:
        """Return the bells in the first list of a queue, and the members that wait for a place in it."""
        lists = ("LRANGE", queue_key(self._settings, queue), 0, -1), ("ZRANGE", self.keys.tenant_queue(word), 0, -1)
        bells, members = self._client.many(lists)
        return bells, members

    @staticmethod
    def queue(bell: str) -> str:
        """Return the name of the queue of a bell."""
        return json.loads(bell)["properties"]["delivery_info"]["routing_key"]
