"""Runs the scripts of `lua/`, and checks their replies. `script_headers.py` reads headers, `script_text.py` the texts.

`state.typed_scripts.Scripts` calls them, and is generated from the headers: one method a script, with its arguments
and replies typed. `python -m ops.typed_scripts` writes it anew.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import takewhile
from typing import Any, Self, TypeVar, cast

from redis.exceptions import NoScriptError, ResponseError

from brainq.errors import ScriptError
from brainq.outage import OutageRetry
from brainq.state.connection import Client, Command, is_redis_unavailable
from brainq.state.keys import Keys
from brainq.state.script_text import NAMES, Generated, ScriptText, read_script, read_signature

_FAILED_AT = re.compile(r"user_script:(\d+)")

T = TypeVar("T")
ScriptCall = tuple[str, Sequence[str], Sequence[Any]]  # a script's name, keys, arguments


class _NotRunYet(Exception):
    """A script was asked for, and has not run."""


def _raw_reply(reply: list[Any], *_call: object) -> list[Any]:
    return reply


@dataclass(frozen=True, slots=True)
class Doorbell:
    """Where bells of one queue go: the broker's list key (empty: the session's outbox), and their text.

    The text is a whole broker message with %ARGS% %ARGSREPR% %TASK_ID% %ROOT_ID% %TAG% to fill in, and for calls
    %TOOL%.
    """

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class Doorbells:
    """Doorbells by queue word: turns, read_only, local_write, network, destructive, finalize, finalize_later,
    judges. One that is not answered in `rering_ms` may be lost: the index says when to look after it. `traces`: their
    texts have %TRACE%, too."""

    queues: Mapping[str, Doorbell]
    bells_key: str
    index_key: str
    outbox_prefix: str
    lanes_prefix: str
    lane_lease_ms: int
    rering_ms: int
    traces: bool = False

    def generated(self) -> Generated:
        """Lua for the libs that include `generated/doorbells` and `generated/index`."""
        index = f"local INDEX_KEY, RERING_MS = [==[{self.index_key}]==], {self.rering_ms}"
        return ("generated/doorbells", self._doorbells()), ("generated/index", index)

    def _doorbells(self) -> str:
        keys = [f"if queue == '{word}' then return [==[{bell.key}]==]" for word, bell in self.queues.items()]
        texts = [f"if queue == '{word}' then return {_joined(bell.text)}" for word, bell in self.queues.items()]
        return "\n".join(
            [
                f"local function bell_key(queue)\n  {' else'.join(keys)} end\nend",
                "local function bell_text(queue, ARGS, ARGSREPR, TASK_ID, ROOT_ID, TAG, TOOL, TRACE)",
                f"  {' else'.join(texts)} end\nend",
                f"local TRACES = {'true' if self.traces else 'false'}",
                f"local BELLS_KEY = [==[{self.bells_key}]==]",
                f"local OUTBOX_PREFIX = [==[{self.outbox_prefix}]==]",
                f"local LANES, LANE_LEASE_MS = [==[{self.lanes_prefix}]==], {self.lane_lease_ms}",
            ]
        )


def _joined(text: str) -> str:
    """A Lua expression that fills the placeholders in: plain concatenation, far cheaper than gsub on each ring."""
    parts = re.split(r"%([A-Z_]+)%", text)
    return " .. ".join(f"[==[{part}]==]" if i % 2 == 0 else part for i, part in enumerate(parts))


class Script:
    """One Lua operation. Its text is put together when it first runs."""

    def __init__(self, client: Client, name: str, generated: Generated) -> None:
        self.signature = read_signature(name)
        self._client = client
        self._words = self.signature.words
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

    def load(self, text: str) -> None:
        """Run `text` from now on."""
        self.text, self.sha = text, hashlib.sha1(text.encode()).hexdigest()

    def run(self, keys: Sequence[str], args: Sequence[Any]) -> list[Any]:
        """Run it with these, in the header's order. Raises ScriptError on an undeclared reply."""
        run = self._client.execute_command
        try:
            reply: list[Any] = run("EVALSHA", self.sha, len(keys), *keys, *args)
        except NoScriptError:
            reply = self._run_text(keys, args)
        except ResponseError as failure:
            raise self.located(failure) from None
        if reply[0] not in self._words:
            raise undeclared(self.signature.name, reply[0], self._words)
        return reply

    def _run_text(self, keys: Sequence[str], args: Sequence[Any]) -> list[Any]:
        try:
            return self._client.execute_command("EVAL", self.text, len(keys), *keys, *args)
        except ResponseError as failure:
            raise self.located(failure) from None

    def located(self, failure: ResponseError) -> ResponseError:
        """The failure with the file and line of what failed, where that is in the script."""
        at = _FAILED_AT.search(str(failure))
        return type(failure)(f"{self._read.place(int(at[1]))}: {failure}") if at else failure

    def checked(self, reply: list[Any]) -> list[Any]:
        """A reply that came by another way. Raises as `run`."""
        if reply[0] not in self._words:
            raise undeclared(self.signature.name, reply[0], self._words)
        return reply


def undeclared(name: str, replied: object, declared: Iterable[str]) -> ScriptError:
    return ScriptError(f"{name}: replied {replied!r}, its header declares {sorted(declared)}")


class LoadedScripts:
    """All scripts, loaded. Raises ScriptError when one's header is not that from which its method was generated.

    headers   the fingerprints of the headers the methods were generated from
    """

    def __init__(self, client: Client, keys: Keys, doorbells: Doorbells, headers: Mapping[str, str]) -> None:
        self.client = client
        self.keys = keys
        self._patience_s = 0.0
        generated = doorbells.generated()
        self._scripts = {name: Script(client, name, generated) for name in NAMES}
        for name, script in self._scripts.items():
            if headers.get(name) != script.signature.fingerprint:
                raise ScriptError(f"{name}.lua: its header has changed; run `python -m ops.typed_scripts`")

    def all(self) -> Mapping[str, Script]:
        return self._scripts

    def patient(self, for_s: float) -> Self:
        """The same scripts, for what a worker does under a lease of `for_s` seconds: while Redis is unavailable, each
        is sent again for as long. Its owner then gets the reply of the first run, which may have been lost."""
        return self._copy(_patience_s=for_s)

    def _send(self, send: Callable[[], T]) -> T:
        if not self._patience_s:
            return send()
        return OutageRetry({}, is_redis_unavailable, time.monotonic() + self._patience_s)(send)

    def run(self, name: str, keys: Sequence[str], args: Sequence[Any]) -> list[Any]:
        return self._send(partial(self._scripts[name].run, keys, args))

    def read(self, commands: Sequence[Command]) -> list[Any]:
        """The raw replies to plain commands that change nothing, in one trip. Raises the first error among them."""
        return self._send(partial(self.client.many, commands))

    def with_reads(self, call: Callable[[Self], T], reads: Sequence[Command]) -> tuple[T, list[Any]]:
        """Run the script that `call` calls, then these plain commands, all in one trip: what it returns, and the
        commands' raw replies, in place of one what Redis refused."""
        replies: list[Any] = []

        def run(name: str, keys: Sequence[str], args: Sequence[Any]) -> list[Any]:
            reply, replies[:] = self.send_with((name, keys, args), reads)
            return reply

        return call(self._running(run)), replies

    def send_with(self, call: ScriptCall, reads: Sequence[Command]) -> tuple[list[Any], list[Any]]:
        """Send a script and plain commands in one go: its reply, and theirs."""
        return self._send(partial(self._send_with, call, reads))

    def _send_with(self, call: ScriptCall, reads: Sequence[Command]) -> tuple[list[Any], list[Any]]:
        name, keys, args = call
        script = self._scripts[name]
        reply, *replies = self.client.replies([("EVALSHA", script.sha, len(keys), *keys, *args), *reads])
        if isinstance(reply, NoScriptError):
            return script.run(keys, args), self.client.replies(reads)
        if isinstance(reply, ResponseError):
            raise script.located(reply)
        return script.checked(reply), replies

    def after(self, first: Callable[[Self], object], call: Callable[[Self], T]) -> T:
        """Run the script that `first` calls, then that of `call`, in one trip: what the second returns.

        Raises what Redis refused of either. Each is called twice, as by `together`.
        """
        replies = self.together([first, call])
        for reply in replies:
            if isinstance(reply, ResponseError):
                raise reply
        return cast(T, replies[1])

    def together(self, calls: Sequence[Callable[[Self], T]]) -> list[T | ResponseError]:
        """Run a script for each of `calls`, all in one trip; in place of what a call returns what Redis refused.

        Each calls one script, of the Scripts that it is given. It is called twice: to ask, and with the reply.
        """
        recorded: list[ScriptCall] = []

        def ask(name: str, keys: Sequence[str], args: Sequence[Any]) -> list[Any]:
            recorded.append((name, keys, args))
            raise _NotRunYet

        for call in calls:
            with suppress(_NotRunYet):
                call(self._running(ask))
        replies = self.send_all(recorded)
        return [
            reply if isinstance(reply, ResponseError) else call(self._running(partial(_raw_reply, reply)))
            for call, reply in zip(calls, replies, strict=True)
        ]

    def send_all(self, calls: Sequence[ScriptCall]) -> list[list[Any] | ResponseError]:
        """Send these in one go; the replies in order, and in place of one what Redis refused.

        From the first script on that the server does not know they run again one by one: a later one may build on it.
        Those before it have run, and would not say the same again.
        """
        sent = [("EVALSHA", self._scripts[name].sha, len(keys), *keys, *args) for name, keys, args in calls]
        replies = self._send(partial(self.client.replies, sent)) if sent else []
        known = sum(1 for _ in takewhile(lambda reply: not isinstance(reply, NoScriptError), replies))
        replies[known:] = [self._tried(*one) for one in calls[known:]]
        scripts = [self._scripts[name] for name, _, _ in calls]
        return [
            script.located(reply) if isinstance(reply, ResponseError) else script.checked(reply)
            for script, reply in zip(scripts, replies, strict=True)
        ]

    def _tried(self, name: str, keys: Sequence[str], args: Sequence[Any]) -> list[Any] | ResponseError:
        try:
            return self._scripts[name].run(keys, args)
        except ResponseError as refused:
            return refused

    def _running(self, run: Callable[[str, Sequence[str], Sequence[Any]], list[Any]]) -> Self:
        """These scripts, but by `run`."""
        return self._copy(run=run)

    def _copy(self, **changed: object) -> Self:
        other = object.__new__(type(self))
        vars(other).update(vars(self), **changed)
        return other
