"""Run the scripts of `lua/`. `script_headers.py` reads their headers, and `script_text.py` their texts.

A script is called by a method that `script_methods.py` makes. `Scripts.run` sends one call, and `Scripts.pipeline`
sends several in one round trip.
"""

from __future__ import annotations

import copy
import hashlib
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import takewhile
from typing import Any, Generic, Self, TypeVar, cast

from redis.exceptions import NoScriptError, RedisError, ResponseError

from brainq.adapters.redis.connection import Client, Command, is_redis_unavailable
from brainq.adapters.redis.doorbells import Doorbells, Outbox
from brainq.adapters.redis.keys import Keys
from brainq.adapters.redis.script_text import NAMES, Generated, ScriptText, read_script, read_signature
from brainq.errors import ScriptError
from brainq.runtime.outage import ONCE, OutageRetry

_FAILED_AT = re.compile(r"user_script:(\d+)")

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
Refusal = TypeVar("Refusal", bound=RedisError)
ReadReply = Callable[[list[Any]], Any]


class Replies(dict[str, ReadReply]):
    """The functions that read the replies of a script, by the reply's word."""

    def __init__(self, script: str, readers: Mapping[str, ReadReply]) -> None:
        super().__init__(readers)
        self.script = script

    def __missing__(self, word: str) -> ReadReply:
        raise undeclared(self.script, word, self)


def undeclared(script: str, replied: object, declared: Iterable[str]) -> ScriptError:
    return ScriptError(f"{script}: replied {replied!r}, its header declares {sorted(declared)}")


class Script:
    """One Lua operation. Its text is put together when it first runs."""

    def __init__(self, name: str, generated: Generated) -> None:
        self.signature = read_signature(name)
        self.key_count = len(self.signature.keys)
        self._generated = generated

    @cached_property
    def _read(self) -> ScriptText:
        return read_script(self.signature.name, self._generated)

    @cached_property
    def text(self) -> str:
        return self._read.text

    @cached_property
    def sha(self) -> str:
        return hashlib.sha1(self.text.encode()).hexdigest()

    @cached_property
    def rings(self) -> bool:
        """Whether the script may leave doorbells in the outbox of its session."""
        return "OUTBOX_PREFIX" in self.text

    def load(self, text: str) -> None:
        """Replace the text of the script, and its hash."""
        self.text, self.sha = text, hashlib.sha1(text.encode()).hexdigest()

    def located(self, failure: Refusal) -> Refusal:
        """Return the failure with the file and line in the script that failed, if it was in the script."""
        at = _FAILED_AT.search(str(failure))
        return type(failure)(f"{self._read.place(int(at[1]))}: {failure}") if at else failure


@dataclass(slots=True, eq=False)
class ScriptCall(Generic[T_co]):
    """A script that is to run on the keys of a session.

    replies   reads its replies
    values    the script's keys, then its arguments, as they are sent to Redis
    """

    scripts: Scripts
    script: Script
    replies: Replies
    session_id: str
    values: Sequence[Any]

    def run(self) -> T_co:
        """Run the script and return its reply. Raises the error of Redis, or ScriptError if the header of the script
        does not declare the reply."""
        return self.scripts.run(self.script, self.replies, self.session_id, self.values)

    def with_reads(self, reads: Sequence[Command]) -> tuple[T_co, list[Any]]:
        """Run the script, then these plain commands, in one round trip. Returns the script's reply and the raw replies
        to the commands, of which each may be the error of Redis."""
        (reply,), found = self.scripts.pipeline([self], reads)
        if isinstance(reply, ResponseError):
            raise reply
        return reply, found

    def after(self, first: ScriptCall[object]) -> T_co:
        """Run `first`, then this call, in one round trip. Returns its reply. Raises the error of either."""
        (before, reply), _ = self.scripts.pipeline((first, self))
        for refused in (before, reply):
            if isinstance(refused, ResponseError):
                raise refused
        return cast(T_co, reply)

    @property
    def command(self) -> Command:
        return ("EVALSHA", self.script.sha, self.script.key_count, *self.values)


class Scripts:
    """All scripts, and the client that runs them.

    outbox   published after each script that may have left doorbells in it; None if doorbells are transactional
    """

    def __init__(self, client: Client, keys: Keys, doorbells: Doorbells, outbox: Outbox | None = None) -> None:
        self.client = client
        self.keys = keys
        self.outbox = outbox
        self.retry = ONCE
        generated = doorbells.generated()
        self.loaded = {name: Script(name, generated) for name in NAMES}

    def run(self, script: Script, replies: Replies, session_id: str, values: Sequence[Any]) -> Any:
        """Run one script, as `ScriptCall.run` describes."""
        began_at = time.monotonic()
        try:
            reply = self.client.execute_command("EVALSHA", script.sha, script.key_count, *values)
        except NoScriptError:
            reply = self.retry(partial(self._send_text, script, values))
        except RedisError as failure:
            send = partial(self._send_text, script, values)
            reply = self.retry.resume(send, script.located(failure), began_at)
        if self.outbox is not None and script.rings:
            self.outbox.flush(session_id)
        return replies[reply[0]](reply)

    def _send_text(self, script: Script, values: Sequence[Any]) -> list[Any]:
        """Run a script that the server may not know, because it was restarted. Returns the raw reply."""
        try:
            return self.client.execute_command("EVAL", script.text, script.key_count, *values)
        except ResponseError as failure:
            raise script.located(failure) from None

    def patient(self, for_s: float) -> Self:
        """Return these scripts for work under a lease of `for_s` seconds: while Redis is unavailable, a script is sent
        again for that long. Its owner then gets the reply of the first run, which may have been lost."""
        other = copy.copy(self)
        other.retry = OutageRetry({}, is_redis_unavailable, lasts_s=for_s)
        return other

    def flush(self, session_id: str) -> None:
        """Publish what a script of another session, or of none, has left in this one's outbox."""
        if self.outbox is not None:
            self.outbox.flush(session_id)

    def read(self, commands: Sequence[Command]) -> list[Any]:
        """Return the raw replies to read-only commands in one round trip. Raises the first error among them."""
        return self.retry(partial(self.client.many, commands))

    def pipeline(
        self, calls: Sequence[ScriptCall[T]], reads: Sequence[Command] = ()
    ) -> tuple[list[T | ResponseError], list[Any]]:
        """Run scripts, then plain commands, in one round trip.

        Returns the scripts' replies, and the raw replies to the commands. A call that Redis refused has its error as
        the reply.
        """
        replies, found = self.retry(partial(self._send, calls, reads))
        for session_id in {call.session_id for call in calls if self.outbox is not None and call.script.rings}:
            self.flush(session_id)
        return [
            call.script.located(reply) if isinstance(reply, ResponseError) else call.replies[reply[0]](reply)
            for call, reply in zip(calls, replies, strict=True)
        ], found

    def _send(
        self, calls: Sequence[ScriptCall[object]], reads: Sequence[Command]
    ) -> tuple[list[list[Any] | ResponseError], list[Any]]:
        """Return the raw replies. From the first script that the server does not know, all scripts run again one by
        one, because later ones may depend on it. Earlier scripts have run and are not repeated."""
        commands = [*(call.command for call in calls), *reads]
        found = self.client.replies(commands) if commands else []
        replies, read = found[: len(calls)], found[len(calls) :]
        known = sum(1 for _ in takewhile(lambda reply: not isinstance(reply, NoScriptError), replies))
        if known < len(calls):
            replies[known:] = [self._try_text(call) for call in calls[known:]]
            read = self.client.replies(reads) if reads else []
        return replies, read

    def _try_text(self, call: ScriptCall[object]) -> list[Any] | ResponseError:
        try:
            return self._send_text(call.script, call.values)
        except ResponseError as refused:
            return refused
