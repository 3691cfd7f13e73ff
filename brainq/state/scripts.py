"""Runs the scripts of `lua/`, and checks their replies. `script_headers.py` reads headers, `script_text.py` the texts.

`state.typed_scripts.Scripts` calls them, and is generated from the headers: one method a script, with its arguments
and replies typed. `python -m ops.typed_scripts` writes it anew.
"""

from __future__ import annotations

import hashlib
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from itertools import takewhile
from typing import Any, NamedTuple, Self, TypeVar, cast

from redis.exceptions import NoScriptError, ResponseError

from brainq.errors import ScriptError
from brainq.outage import OutageRetry
from brainq.state.connection import Client, Command, is_redis_unavailable
from brainq.state.doorbells import Doorbells, Outbox
from brainq.state.keys import Keys, is_shared
from brainq.state.script_text import NAMES, Generated, ScriptText, read_script, read_signature

_FAILED_AT = re.compile(r"user_script:(\d+)")

T = TypeVar("T")


class _NotRunYet(Exception):
    """A script was asked for, and has not run."""


class Script:
    """One Lua operation. Its text is put together when it first runs."""

    def __init__(self, client: Client, keys: Keys, name: str, generated: Generated) -> None:
        self.signature = read_signature(name)
        self._client = client
        self._keys = keys
        self._templates = [keys.template(key) for key in self.signature.keys if is_shared(key)]
        self._key_count = len(self.signature.keys)
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

    @cached_property
    def rings(self) -> bool:
        """Whether it may leave doorbells in the outbox of its session."""
        return "OUTBOX_PREFIX" in self.text

    def load(self, text: str) -> None:
        """Run `text` from now on."""
        self.text, self.sha = text, hashlib.sha1(text.encode()).hexdigest()

    def command(self, session_id: str, turn_id: str, args: Sequence[Any], given: Sequence[str] = ()) -> Sequence[Any]:
        """What runs it on the keys of this session and turn, "" where it has none.

        args    in the header's order
        given   the keys that only the caller knows: the header's first ones
        """
        bases = self._keys.bases(session_id, turn_id)
        command = ["EVALSHA", self.sha, self._key_count, *given]
        for base, end in self._templates:  # a loop: a comprehension costs half as much again, on each call
            command.append(bases[base] + end)
        command += args
        return command

    def run(self, command: Sequence[Any]) -> list[Any]:
        """Its reply to a `command`. Raises ScriptError on an undeclared one."""
        send = self._client.execute_command
        try:
            try:
                reply: list[Any] = send(*command)
            except NoScriptError:
                reply = send("EVAL", self.text, *command[2:])
        except ResponseError as failure:
            raise self.located(failure) from None
        if reply[0] not in self._words:
            raise undeclared(self.signature.name, reply[0], self._words)
        return reply

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


class ScriptCall(NamedTuple):
    """A script that is to run on a session's keys, and the command for it."""

    script: Script
    session_id: str
    command: Sequence[Any]


class LoadedScripts:
    """All scripts, loaded. Raises ScriptError when one's header is not that from which its method was generated.

    headers   the fingerprints of the headers the methods were generated from
    outbox    published after each script that may have left doorbells in it; None: doorbells are transactional
    """

    def __init__(
        self,
        client: Client,
        keys: Keys,
        doorbells: Doorbells,
        headers: Mapping[str, str],
        outbox: Outbox | None = None,
    ) -> None:
        self.client = client
        self.keys = keys
        self._outbox = outbox
        self._retry: Callable[[Callable[[], Any]], Any] = operator.call  # once
        generated = doorbells.generated()
        self._scripts = {name: Script(client, keys, name, generated) for name in NAMES}
        for name, script in self._scripts.items():
            if headers.get(name) != script.signature.fingerprint:
                raise ScriptError(f"{name}.lua: its header has changed; run `python -m ops.typed_scripts`")

    def all(self) -> Mapping[str, Script]:
        return self._scripts

    def patient(self, for_s: float) -> Self:
        """The same scripts, for what a worker does under a lease of `for_s` seconds: while Redis is unavailable, each
        is sent again for as long. Its owner then gets the reply of the first run, which may have been lost."""
        return self._copy(_retry=OutageRetry({}, is_redis_unavailable, lasts_s=for_s))

    def run(
        self, name: str, session_id: str, turn_id: str, args: Sequence[Any], given: Sequence[str] = ()
    ) -> list[Any]:
        """Run a script; the parameters are those of `Script.command`."""
        script = self._scripts[name]
        reply = self._retry(partial(script.run, script.command(session_id, turn_id, args, given)))
        if self._outbox is not None and script.rings:
            self._outbox.flush(session_id)
        return reply

    def flush(self, session_id: str) -> None:
        """Publish what a script of another session, or of none, has left in this one's outbox."""
        if self._outbox is not None:
            self._outbox.flush(session_id)

    def read(self, commands: Sequence[Command]) -> list[Any]:
        """The raw replies to plain commands that change nothing, in one trip. Raises the first error among them."""
        return self._retry(partial(self.client.many, commands))

    def with_reads(self, call: Callable[[Self], T], reads: Sequence[Command]) -> tuple[T, list[Any]]:
        """Run the script that `call` calls, then these plain commands, all in one trip: what it returns, and the
        commands' raw replies, in place of one what Redis refused."""
        found: list[Any] = []

        def run(*given: Any) -> list[Any]:
            (reply,), found[:] = self.send_all([self._call(*given)], reads)
            if isinstance(reply, ResponseError):
                raise reply
            return reply

        return call(self._copy(run=run)), found

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
        asked: list[ScriptCall] = []

        def ask(*given: Any) -> list[Any]:
            asked.append(self._call(*given))
            raise _NotRunYet

        for call in calls:
            with suppress(_NotRunYet):
                call(self._copy(run=ask))
        replies, _ = self.send_all(asked)
        return [
            reply if isinstance(reply, ResponseError) else call(self._copy(run=partial(_answer, reply)))
            for call, reply in zip(calls, replies, strict=True)
        ]

    def send_all(
        self, calls: Sequence[ScriptCall], reads: Sequence[Command] = ()
    ) -> tuple[list[list[Any] | ResponseError], list[Any]]:
        """Run scripts, then plain commands, in one trip: the replies to both, in place of one what Redis refused."""
        replies, found = self._retry(partial(self._send_all, calls, reads))
        for session_id in {call.session_id for call in calls if self._outbox is not None and call.script.rings}:
            self.flush(session_id)
        return replies, found

    def _send_all(
        self, calls: Sequence[ScriptCall], reads: Sequence[Command]
    ) -> tuple[list[list[Any] | ResponseError], list[Any]]:
        """From the first script on that the server does not know all run again one by one: a later one may build on
        it. Those before it have run, and would not say the same again."""
        commands = [*(call.command for call in calls), *reads]
        found = self.client.replies(commands) if commands else []
        replies, read = found[: len(calls)], found[len(calls) :]
        known = sum(1 for _ in takewhile(lambda reply: not isinstance(reply, NoScriptError), replies))
        if known < len(calls):
            replies[known:] = [_tried(call) for call in calls[known:]]
            read = self.client.replies(reads) if reads else []
        return [
            call.script.located(reply) if isinstance(reply, ResponseError) else call.script.checked(reply)
            for call, reply in zip(calls, replies, strict=True)
        ], read

    def _call(
        self, name: str, session_id: str, turn_id: str, args: Sequence[Any], given: Sequence[str] = ()
    ) -> ScriptCall:
        script = self._scripts[name]
        return ScriptCall(script, session_id, script.command(session_id, turn_id, args, given))

    def _copy(self, **changed: object) -> Self:
        """These scripts, but for what is changed."""
        other = object.__new__(type(self))
        vars(other).update(vars(self), **changed)
        return other


def _tried(call: ScriptCall) -> list[Any] | ResponseError:
    try:
        return call.script.run(call.command)
    except ResponseError as refused:
        return refused


def _answer(reply: list[Any], *_call: object) -> list[Any]:
    return reply
