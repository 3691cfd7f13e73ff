"""The scripts as the model runs them: by its own clock, with lost replies, and watched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self, cast

import redis

from brainq.adapters.redis.connection import Client, Command
from brainq.adapters.redis.keys import Keys
from brainq.adapters.redis.script_headers import Signature
from brainq.adapters.redis.scripts import Script, Scripts
from brainq.app.wiring import doorbells
from brainq.runtime.settings.deployment import Settings
from tests.support.model.client import ModelClient
from tests.support.model.rules import BrokenRule

CLOCK = "clock"
_TIME = "redis.call('TIME')"
# Redis TIME cannot be set, so the scripts read a key instead: a schedule is the same whenever it runs.
_MODEL_TIME = f"redis.call('HMGET', '{CLOCK}', 's', 'us')"

# So few turns wait for their finalizer, and so few calls, that lists of the usual length would hold all of them.
_PLACES = "local function places_of(list) return "
_MODEL_PLACES = _PLACES + f"tonumber(redis.call('HGET', '{CLOCK}', 'places')) or "

# The whole keyspace in one number: what a script that ran twice may not change. Not DUMP, whose order of a
# hash's fields changes while the server rehashes.
DIGEST = """
local function in_order(list) table.sort(list) return list end
local read = {
  string = function(key) return {redis.call('GET', key)} end,
  list = function(key) return redis.call('LRANGE', key, 0, -1) end,
  set = function(key) return in_order(redis.call('SMEMBERS', key)) end,
  zset = function(key) return redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end,
  stream = function(key)
    local flat = {}
    for _, entry in ipairs(redis.call('XRANGE', key, '-', '+')) do
      flat[#flat + 1] = entry[1] .. '=' .. table.concat(entry[2], '=')
    end
    return flat
  end,
  hash = function(key)
    local flat, fields = redis.call('HGETALL', key), {}
    for i = 1, #flat, 2 do fields[#fields + 1] = flat[i] .. '=' .. flat[i + 1] end
    return in_order(fields)
  end,
}
local all = {}
for _, key in ipairs(in_order(redis.call('KEYS', '*'))) do
  all[#all + 1] = key .. ':' .. table.concat(read[redis.call('TYPE', key).ok](key), ',')
end
return redis.sha1hex(table.concat(all, '|'))
"""


def by_model_clock(text: str) -> str:
    """Return a script's text that reads the key CLOCK (`s`, `us`) in place of Redis TIME."""
    return text.replace(_TIME, _MODEL_TIME)


def named(signature: Signature, command: Sequence[Any]) -> dict[str, Any]:
    """Return the arguments of a script, by the names of its header."""
    names = (*signature.keys, *(arg.name for arg in signature.args))
    return dict(zip(names, command[3:], strict=False))


class Watcher(Protocol):
    """The observer of each script's run."""

    def before(self, name: str) -> str:
        """Return the fault of the next run: none, `twice`, `request lost` or `reply lost`."""
        ...

    def look(self) -> list[Any]:
        """Return the command that reads the state."""
        ...

    def after(self, name: str, given: Mapping[str, Any], reply: list[str], state: list[str] | None) -> None: ...


class WatchedScript:
    """A stand-in for one Script."""

    def __init__(self, script: Script, client: ModelClient, watcher: Watcher) -> None:
        self._script = script
        self._client = client
        self._watcher = watcher
        self.signature = script.signature
        self._changes_turns = not {"leases", "index"} & set(script.signature.keys)
        self.load(by_model_clock(script.text).replace(_PLACES, _MODEL_PLACES))

    def load(self, text: str) -> None:
        self.text = text
        self._script.load(text)

    def __call__(self, run: Sequence[Any]) -> list[Any]:
        name = self.signature.name
        fate = self._watcher.before(name)
        if fate == "request lost":
            raise redis.ConnectionError(f"{name}: the request was lost")
        if self._changes_turns:
            reply, state = self._client.many([run, self._watcher.look()])
        else:
            reply, state = self._client.many([run])[0], None
        self._watcher.after(name, named(self.signature, run), reply, state)
        if fate == "twice":
            once, reply, twice = self._client.many([("EVAL", DIGEST, 0), run, ("EVAL", DIGEST, 0)])
            if once != twice:
                raise BrokenRule(f"{name} ran twice and changed something the second time: it replied {reply}")
        if fate == "reply lost":
            raise redis.ConnectionError(f"{name}: the reply was lost")
        return reply


class WatchedClient:
    """A stand-in for the client of the scripts. Scripts run watched, one after the other.

    If a request or a reply is lost, those behind it are lost, too.
    """

    def __init__(self, client: ModelClient) -> None:
        self.watched: dict[str, WatchedScript] = {}
        self._client = client

    def execute_command(self, *words: Any) -> Any:
        return self.watched[words[1]](words)

    def replies(self, commands: Sequence[Command]) -> list[Any]:
        return [
            self.execute_command(*command) if command[0] == "EVALSHA" else self._client.many([command])[0]
            for command in commands
        ]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


class WatchedScripts(Scripts):
    """All scripts, watched. `text_of` and `replace` make mutants."""

    def __init__(self, client: ModelClient, watcher: Watcher, settings: Settings) -> None:
        self._wire, self._seen = client, WatchedClient(client)
        super().__init__(cast(Client, self._seen), Keys(settings.key_prefix), doorbells(settings))
        self._watched = {name: WatchedScript(script, client, watcher) for name, script in self.loaded.items()}
        for name in self._watched:
            self._load(name)

    def patient(self, for_s: float) -> Self:
        """Return itself. Nothing waits here, because schedules are about losses."""
        return self

    def replace(self, name: str, old: str, new: str) -> None:
        """Run `name` with `new` in place of `old`, which must occur in it."""
        script = self._watched[name]
        assert old in script.text, f"{name}.lua no longer contains {old!r}: mend the mutant"
        script.load(script.text.replace(old, new))
        self._load(name)

    def _load(self, name: str) -> None:
        self._wire.many([("SCRIPT", "LOAD", self._watched[name].text)])
        self._seen.watched[self.loaded[name].sha] = self._watched[name]
