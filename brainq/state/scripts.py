"""Runs the scripts of `lua/`, and reads their replies. `script_headers.py` reads headers, `script_text.py` the texts.

`state.typed_scripts.Scripts` is generated from the headers. It has one method a script, which makes a `ScriptCall`: the
script with its keys and arguments. `ScriptCall.run` sends one, `LoadedScripts.pipeline` several in one trip. `python -m
ops.typed_scripts` writes it anew.
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
from operator import itemgetter
from typing import Any, Generic, Self, TypeVar, cast

from redis.exceptions import NoScriptError, RedisError, ResponseError

from brainq.errors import ScriptError
from brainq.outage import ONCE, OutageRetry
from brainq.state.connection import Client, Command, is_redis_unavailable
from brainq.state.doorbells import Doorbells, Outbox
from brainq.state.keys import Keys
from brainq.state.script_text import NAMES, Generated, ScriptText, read_script, read_signature

_FAILED_AT = re.compile(r"user_script:(\d+)")

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
Refusal = TypeVar("Refusal", bound=RedisError)
ReadReply = Callable[[list[Any]], Any]


class Replies(dict[str, ReadReply]):
    """How each reply of a script is read, by its word. Raises ScriptError for one that its header does not declare."""

    def __init__(self, name: str, words: Iterable[str], fuller: Mapping[str, ReadReply]) -> None:
        """`fuller` are those that say more than their word."""
        super().__init__((word, fuller.get(word, itemgetter(0))) for word in words)
        self.name = name

    def __missing__(self, word: str) -> ReadReply:
        raise undeclared(self.name, word, self)


def undeclared(name: str, replied: object, declared: Iterable[str]) -> ScriptError:
    return ScriptError(f"{name}: replied {replied!r}, its header declares {sorted(declared)}")


class Script:
    """One Lua operation. Its text is put together when it first runs."""

    def __init__(self, name: str, generated: Generated, fuller: Mapping[str, ReadReply]) -> None:
        self.signature = read_signature(name)
        self.key_count = len(self.signature.keys)
        self.replies = Replies(name, self.signature.words, fuller)
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
        """Whether it may leave doorbells in the outbox of its session."""
        return "OUTBOX_PREFIX" in self.text

    def load(self, text: str) -> None:
        """Run `text` from now on."""
        self.text, self.sha = text, hashlib.sha1(text.encode()).hexdigest()

    def located(self, failure: Refusal) -> Refusal:
        """The failure with the file and line of what failed, where that is in the script."""
        at = _FAILED_AT.search(str(failure))
        return type(failure)(f"{self._read.place(int(at[1]))}: {failure}") if at else failure


@dataclass(slots=True, eq=False)
class ScriptCall(Generic[T_co]):
    """A script that is to run on a session's keys. `values` are its keys, then its arguments, as Redis gets them."""

    scripts: LoadedScripts
    script: Script
    session_id: str
    values: Sequence[Any]

    def run(self) -> T_co:
        """What it replies. Raises what Redis refused, and ScriptError for a reply that its header does not declare."""
        scripts, script = self.scripts, self.script
        began_at = time.monotonic()
        try:
            reply = scripts.client.execute_command("EVALSHA", script.sha, script.key_count, *self.values)
        except RedisError as failure:
            reply = self._reply_after(failure, began_at)
        if scripts.outbox is not None and script.rings:
            scripts.outbox.flush(self.session_id)
        return script.replies[reply[0]](reply)

    def with_reads(self, reads: Sequence[Command]) -> tuple[T_co, list[Any]]:
        """Run it, then these plain commands, all in one trip: what it replies, and the commands' raw replies, in place
        of one what Redis refused."""
        (reply,), found = self.scripts.pipeline([self], reads)
        if isinstance(reply, ResponseError):
            raise reply
        return reply, found

    def after(self, first: ScriptCall[object]) -> T_co:
        """Run `first`, then this, in one trip: what this replies. Raises what Redis refused of either."""
        (before, reply), _ = self.scripts.pipeline((first, self))
        for refused in (before, reply):
            if isinstance(refused, ResponseError):
                raise refused
        return cast(T_co, reply)

    @property
    def command(self) -> Command:
        return ("EVALSHA", self.script.sha, self.script.key_count, *self.values)

    def send_text(self) -> list[Any]:
        """Its raw reply, where the server may not know the script: it may have been restarted."""
        try:
            return self.scripts.client.execute_command("EVAL", self.script.text, self.script.key_count, *self.values)
        except ResponseError as failure:
            raise self.script.located(failure) from None

    def _reply_after(self, failure: RedisError, began_at: float) -> list[Any]:
        """Its raw reply in the end, where that was the outcome of sending it first."""
        if isinstance(failure, NoScriptError):
            return self.scripts.retry(self.send_text)
        return self.scripts.retry.resume(self.send_text, self.script.located(failure), began_at)


class LoadedScripts:
    """All scripts, loaded. Raises ScriptError when one's header is not that from which its method was generated.

    headers   the fingerprints of the headers the methods were generated from
    fuller    how replies are read that say more than their word: by script and word
    outbox    published after each script that may have left doorbells in it; None: doorbells are transactional
    """

    def __init__(
        self,
        client: Client,
        keys: Keys,
        doorbells: Doorbells,
        headers: Mapping[str, str],
        fuller: Mapping[str, Mapping[str, ReadReply]],
        outbox: Outbox | None = None,
    ) -> None:
        self.client = client
        self.keys = keys
        self.outbox = outbox
        self.retry = ONCE
        generated = doorbells.generated()
        self.loaded = {name: Script(name, generated, fuller.get(name, {})) for name in NAMES}
        for name, script in self.loaded.items():
            if headers.get(name) != script.signature.fingerprint:
                raise ScriptError(f"{name}.lua: its header has changed; run `python -m ops.typed_scripts`")

    def patient(self, for_s: float) -> Self:
        """The same scripts, for what a worker does under a lease of `for_s` seconds: while Redis is unavailable, each
        is sent again for as long. Its owner then gets the reply of the first run, which may have been lost."""
        other = copy.copy(self)
        other.retry = OutageRetry({}, is_redis_unavailable, lasts_s=for_s)
        return other

    def flush(self, session_id: str) -> None:
        """Publish what a script of another session, or of none, has left in this one's outbox."""
        if self.outbox is not None:
            self.outbox.flush(session_id)

    def read(self, commands: Sequence[Command]) -> list[Any]:
        """The raw replies to plain commands that change nothing, in one trip. Raises the first error among them."""
        return self.retry(partial(self.client.many, commands))

    def pipeline(
        self, calls: Sequence[ScriptCall[T]], reads: Sequence[Command] = ()
    ) -> tuple[list[T | ResponseError], list[Any]]:
        """Run scripts, then plain commands, in one trip: what the scripts reply, and the raw replies to the commands.
        In place of one what Redis refused."""
        replies, found = self.retry(partial(self._send, calls, reads))
        for session_id in {call.session_id for call in calls if self.outbox is not None and call.script.rings}:
            self.flush(session_id)
        return [
            call.script.located(reply) if isinstance(reply, ResponseError) else call.script.replies[reply[0]](reply)
            for call, reply in zip(calls, replies, strict=True)
        ], found

    def _send(
        self, calls: Sequence[ScriptCall[object]], reads: Sequence[Command]
    ) -> tuple[list[list[Any] | ResponseError], list[Any]]:
        """The raw replies. From the first script on that the server does not know all run again one by one: a later
        one may build on it. Those before it have run, and would not say the same again."""
        commands = [*(call.command for call in calls), *reads]
        found = self.client.replies(commands) if commands else []
        replies, read = found[: len(calls)], found[len(calls) :]
        known = sum(1 for _ in takewhile(lambda reply: not isinstance(reply, NoScriptError), replies))
        if known < len(calls):
            replies[known:] = [_tried(call) for call in calls[known:]]
            read = self.client.replies(reads) if reads else []
        return replies, read


def _tried(call: ScriptCall[object]) -> list[Any] | ResponseError:
    try:
        return call.send_text()
    except ResponseError as refused:
        return refused
