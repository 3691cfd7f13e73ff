"""Scripts over one empty Redis, by a clock of the test's own, each run twice."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Literal, cast

from redis.exceptions import NoScriptError

from brainq.adapters.celery.names import ALL_QUEUES, FINALIZE_QUEUE, later_key, queue_key
from brainq.adapters.redis.connection import make_client
from brainq.adapters.redis.doorbells import Doorbells
from brainq.adapters.redis.keys import Keys
from brainq.adapters.redis.script_text import LUA, Generated
from brainq.adapters.redis.scripts import Script, Scripts
from brainq.app.wiring import doorbells
from brainq.runtime.settings.deployment import Settings
from tests.support.model.scripts import CLOCK, DIGEST, by_model_clock

SID = "s1"
TID = "t01"
LEASE_MS = 10_000
TIMEOUT_MS = 60_000
LATER_MS = 40
_LIFETIMES = """
local all = {}
for _, key in ipairs(redis.call('KEYS', '*')) do all[#all + 1] = {key, redis.call('PTTL', key)} end
return all
"""
# What they do is to say when something ends, or is due: later means later.
RENEWS = frozenset(
    {
        "turn_beat",
        "quarantine_wait",
        "call_beat",
        "finalize_beat",
        "lane_beat",
        "call_start",
        "index_take",
        "turn_sweep",
        "capacity_keep",
        "stop_put",
    }
)

_OF_SESSION = ("session", "waiting", "history", "notices", "flags", "readiness")
_OF_TURN = (
    *("spec", "budget", "trace", "guard", "events", "sources", "blocked", "spends", "result"),
    *("mailbox", "receipts", "changes"),
)
# What a script is given unless its test says otherwise.
_USUAL: dict[str, Any] = {
    "sid": SID,
    "owner": "w1",
    "fence": 1,
    "attempt": 1,
    "call": "c1-0",
    "lease_ms": LEASE_MS,
    "spec_json": "{}",
    "timeout_ms": TIMEOUT_MS,
    "max_wait_ms": "",
    "max_steps": 2,
    "max_tool_calls": 9,
    "max_reflections": 1,
    "max_context_tokens": 1000,
    "max_total_tokens": "",
    "max_cost_usd": "",
    "lost_reason": "",
    "prompt_hash": "h",
    "estimate": 10,
    "estimate_usd": "",
    "asked": "1:1",
    "part": "1:1",
    "text": "",
    "step": 1,
    "item": "",
    "block": "",
    "tail": "",
    "input": 0,
    "output": 0,
    "cache_read": 0,
    "cache_creation": 0,
    "cost": "",
    "spend": '{"step":1}',
    "lost": "",
    "under_way": "",
    "earlier": 0,
    "tokens": 10,
    "usd": "",
    "forget": "",
    "shown": "",
    "queue_position": "",
    "stop": "",
    "stop_fields": (),
    "opening_ms": 10_000,
    "mark": "1",
    "judge": "relevance",
    "queue": "judges",
    "bell": "judge.relevance",
    "job": "relevance",
    "status": "completed",
    "message": '{"role":"tool"}',
    "detail": "",
    "latency_ms": 5,
    "found": "",
    "notice": "",
    "ending": "completed",
    "stop_reason": "answered",
    "failure": "",
    "marker": "",
    "open_status": "cancelled",
    "open_text": "after %SECONDS% s",
    "first_step": "log",
    "keep_session_ms": 100_000,
    "keep_ms": 50_000,
    "reason": "stop",
    "rering_ms": 5_000,
    "failing_ms": 5_000,
    "unserved_ms": 15_000,
    "most": 10,
    "hold_ms": 600_000,
    "kind": "steps",
    "body": "{}",
    "data": "{}",
    "next_step": "result",
    "retry_ms": 500,
    "by": "tool",
    "id": "1",
    "turn_kind": "chat",
    "isolated": "",
    "parent": "",
    "brain": "",
    "brains": "shop",
    "declared": "",
    "left_ms": 300_000,
    "mode": "enqueue",
    "priority": "normal",
    "readiness_word": "",
    "serves": "read_only local_write network destructive",
    "channel": "stops",
    "queued_only": "0",
    "among": 1,
    "problem": "",
    "notes": [],
    "max_children": 0,
    "grace_ms": 2_000,
    "drain": 0,
    "ready": "",
    "full": 0,
    "items": [],
    "outcome": "",
    "last": "",
    "diff": "",
    "n_changes": 0,
    "changed": "",
    "still_runs": "0",
    "why": "outside",
    "token": "k1",
    "spent": "",
    "known": "1",
    "decision": "approved",
    "who": "ann",
    "comment": "",
    "expect": "h",
    "edit": "",
    "hold": "h1",
    "hold_kind": "hold",
    "kept": "",
    "trace": "",
    "cell_tenant": "",
    "policy": "deny",
    "cancels": "0",
    "flag": "f1",
    "message_id": "m1",
    "most_bytes": 1_000_000,
    "most_lost": 2,
    "longest_lease_ms": LEASE_MS,
    "process": "@h-1",
    "how": "was killed by signal 9",
    "channels": "alive:",
    "apart_ms": 900,
    "forget_ms": 600_000,
    "absent_at": 0,
    "shared": "0",
    "beat_ms": 3_000,
    "money": "",
    "granted": "1",
    "name": "budget all/day",
    "prefix": "bq:",
    "stay": "",
    "visit": "",
}


# What they say to an owner, whose first reply may have been lost: they say it again.
SAYS_AGAIN = frozenset({"GO", "OK", "SETTLED", "PARKED", "GIVEN"})
OWNED = frozenset(
    {
        *("turn_claim", "call_claim", "call_start", "call_settle", "call_park", "call_token"),
        *("finalize_claim", "finalize_settle", "finalize_send"),
    }
)


class _LaterBells(Doorbells):
    """Those of a build that has another format of a turn's state."""

    of_format: tuple[int, int]

    @classmethod
    def of(cls, bells: Doorbells, of_format: tuple[int, int]) -> _LaterBells:
        later = cls(**{field.name: getattr(bells, field.name) for field in fields(bells)})
        object.__setattr__(later, "of_format", of_format)
        return later

    def generated(self) -> Generated:
        formats = "STATE_FORMAT, OLDEST_FORMAT = {}, {}".format(*self.of_format)
        text = re.sub("STATE_FORMAT, OLDEST_FORMAT = .*", formats, (LUA / "lib/state_format.lua").read_text())
        return (*Doorbells.generated(self), ("lib/state_format", text))


class Rig:
    """Runs scripts by name: names of keys are filled in, arguments default to what a test rarely cares about."""

    def __init__(
        self,
        url: str,
        doorbell: Literal["transactional", "outbox"] = "transactional",
        *,
        of_format: tuple[int, int] | None = None,
    ) -> None:
        """`of_format`: the scripts are a later build's, which writes the first format and reads back to the second."""
        settings = Settings(redis_url=None, doorbell=doorbell)
        self.client: Any = make_client(url)
        self.keys = Keys(settings.prefix)
        bells = doorbells(settings)
        self.scripts = Scripts(self.client, self.keys, _LaterBells.of(bells, of_format) if of_format else bells)
        for script in self.scripts.loaded.values():
            script.load(by_model_clock(script.text))
        self._queues = {queue: queue_key(settings, queue) for queue in ALL_QUEUES}
        self._queues["later"] = later_key(settings, FINALIZE_QUEUE)
        self.begin()

    def begin(self) -> None:
        """Set the clock of a Redis that was emptied."""
        self.now_ms = 1_000_000_000
        self.pass_ms(0)

    def close(self) -> None:
        self.client.close()
        self.client.connection_pool.disconnect()

    def pass_ms(self, passed_ms: int) -> None:
        self.now_ms += passed_ms
        self.client.hset(CLOCK, mapping={"s": self.now_ms // 1000, "us": self.now_ms % 1000 * 1000})

    def once(self, name: str, *, tid: str = TID, sid: str = SID, **given: Any) -> list[Any]:
        """Run a script once. Returns its raw reply."""
        script = self.scripts.loaded[name]
        return self._sent(script, self._command(script, tid, sid, given))

    def run(self, name: str, *, tid: str = TID, sid: str = SID, **given: Any) -> list[Any]:
        """Run a script twice. Returns the first raw reply. Fails if the second run, at once or later, changes anything,
        or replies something else to an owner."""
        script = self.scripts.loaded[name]
        command = self._command(script, tid, sid, given)
        before = self.client.eval(DIGEST, 0)
        began = time.monotonic()  # a lifetime that each run sets anew may differ by what has passed since the first
        reply = self._sent(script, command)
        once, lifetimes = self.client.eval(DIGEST, 0), self.lifetimes()
        said_again = self._sent(script, command)
        assert self.client.eval(DIGEST, 0) == once, f"{name} changed something when it ran again"
        if name in OWNED and reply[0] in SAYS_AGAIN:
            said = reply[:1] if name == "call_settle" else reply[:3]  # why a thread has nothing is said once
            assert said_again[: len(said)] == said, f"{name} said another thing when it ran again"
        again = self.lifetimes()
        passed_ms = (time.monotonic() - began) * 1000 + 1
        for key, left_ms in again.items():
            before_ms = lifetimes[key]
            same = left_ms == before_ms if min(left_ms, before_ms) < 0 else abs(left_ms - before_ms) <= passed_ms
            assert same, f"{name} changed how long {key} lives when it ran again: {before_ms} to {left_ms} ms"
        # What had nothing to do yet may have it later.
        if name not in RENEWS and once != before:
            self._run_later(script, command, name)
        return reply

    def _command(self, script: Script, tid: str, sid: str, given: dict[str, Any]) -> Sequence[Any]:
        """Return what runs a script on the usual keys and arguments, but for those that are given."""
        sig = script.signature
        known = {
            **_USUAL,
            **self.names(tid, sid),
            "tid": tid,
            "sid": sid,
            "retryable": "0",
            "block": "0" if sig.name in ("call_settle", "call_park") else "",
            **given,
        }
        args = [*(known[arg.name] for arg in sig.args), *(known[sig.more_args.name] if sig.more_args else ())]
        return ("EVALSHA", script.sha, len(sig.keys), *(known[name] for name in sig.keys), *args)

    def _run_later(self, script: Script, command: Sequence[Any], name: str) -> None:
        """A caller whose reply was lost tries again after a while: that, too, changes nothing."""
        self.pass_ms(LATER_MS)
        once = self.client.eval(DIGEST, 0)
        self._sent(script, command)
        assert self.client.eval(DIGEST, 0) == once, f"{name} changed something when it ran again later"
        self.pass_ms(-LATER_MS)

    def _sent(self, script: Script, command: Sequence[Any]) -> list[Any]:
        """Its raw reply."""
        try:
            reply = self.client.execute_command(*command)
        except NoScriptError:
            reply = self.client.execute_command("EVAL", script.text, *command[2:])
        assert reply[0] in script.signature.words
        return reply

    def lifetimes(self) -> dict[str, int]:
        """How long each key lives still, in ms; -1 for one that has no end."""
        return dict(self.client.eval(_LIFETIMES, 0))

    def names(self, tid: str, sid: str = SID) -> dict[str, str]:
        turn = self.keys.turn(sid, tid)
        names = {part: self.keys.of_session(sid, part) for part in _OF_SESSION}
        names |= {part: f"{turn}:{part}" for part in _OF_TURN}
        names |= {
            "turn": turn,
            "own_history": f"{turn}:history",
            "rung": f"{turn}:rung:relevance",
            "base": self.keys.turns_base(sid),
            "index": self.keys.index,
            "swept": self.keys.swept,
            "run": self.keys.run,
            "stopped": self.keys.stopped,
            "capacity": self.keys.room,
            "metrics": self.keys.metrics,
            "moved": self.keys.moved,
            "presence": self.keys.presence,
        }
        return names | {"leases": self.keys.lane_leases}

    def turn(self, tid: str = TID) -> dict[str, str]:
        return cast(dict[str, str], self.client.hgetall(self.names(tid)["turn"]))

    def look_in_ms(self, tid: str = TID, sid: str = SID) -> float | None:
        """In how long the sweeper looks at a turn; None when it does not."""
        at_ms = cast("float | None", self.client.zscore(self.keys.index, f"{sid} {tid}"))
        return None if at_ms is None else at_ms - self.now_ms

    def status(self, call: str = "c1-0", tid: str = TID, sid: str = SID) -> str | None:
        return cast("str | None", self.client.hget(self.names(tid, sid)["trace"], f"{call}:status"))

    def history(self) -> list[dict[str, Any]]:
        return [json.loads(item) for item in self.client.lrange(self.names(TID)["history"], 0, -1)]

    def events(self, tid: str = TID, sid: str = SID) -> list[str]:
        return [event["kind"] for _, event in self.client.xrange(self.names(tid, sid)["events"])]

    def bells(self, queue: str) -> list[list[Any]]:
        """The arguments of the doorbells in a queue, oldest first; they are taken from it."""
        key = self._queues[queue]
        rung = [json.loads(json.loads(text)["body"])[0] for text in reversed(self.client.lrange(key, 0, -1))]
        self.client.delete(key)
        return rung

    def put_in_line(self, queue: str) -> None:
        """Somebody else's doorbell waits in a queue."""
        self.client.lpush(self._queues[queue], "somebody else's doorbell")

    def task_ids(self, queue: str) -> list[str]:
        """The task ids of the doorbells in a queue, oldest first."""
        held = reversed(self.client.lrange(self._queues[queue], 0, -1))
        return [json.loads(text)["headers"]["id"] for text in held]

    # Where a turn can be brought before a test begins.

    def active(self, **given: Any) -> None:
        """Submitted, and its coordinator rung."""
        assert self.run("turn_submit", **given)[0] == "ACTIVE"

    def owned(self, **given: Any) -> None:
        """Owned by w1 under fence 1."""
        self.active(**given)
        assert self.run("turn_claim", tid=given.get("tid", TID), fence=0) == ["GO", 1, self.now_ms, "0", "", "0"]

    def committed(self, *calls: dict[str, Any], **given: Any) -> list[Any]:
        """With the calls of step 1, all in the wave they name."""
        self.owned(**given)
        return self.commit(*calls)

    def commit(self, *calls: dict[str, Any], **given: Any) -> list[Any]:
        """The owner's step 1, with these calls."""
        asked = '{"role":"assistant"}'
        plan = json.dumps([planned(**call) for call in calls])
        reply = self.run("step_commit", item=asked, calls=plan, **given)
        assert reply[0] == "COMMITTED"
        return reply

    def running(self, **call: Any) -> None:
        """With one call, which w1 runs."""
        self.committed(call)
        assert self.run("call_claim")[0] == "GO"

    def closing(self, **given: Any) -> None:
        """Ended, with the finalizer's first step rung."""
        self.owned(**given)
        assert self.run("turn_end")[0] == "ENDED"

    def finalizing(self) -> None:
        """With its first finalizer step claimed by w1 under fence 1."""
        self.closing()
        assert self.run("finalize_claim", step="log")[:3] == ["GO", 1, 1]


def planned(index: int = 0, effect: str = "read_only", wave: int = 1, **given: Any) -> dict[str, Any]:
    """One call of a step's plan as `step_commit` takes it."""
    call = {
        "id": f"c1-{index}",
        "tool": "tool",
        "effect": effect,
        "wave": wave,
        "spec": "{}",
        "hash": "h",
        "fp": "",
        "cap_ms": 1000,
        "lanes": "[]",
        "again": "0",
        "repairs": 0,
        "denied": "",
        "message": "",
    }
    return call | given


WRITE = {"effect": "local_write"}
