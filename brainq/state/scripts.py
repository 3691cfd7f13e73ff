"""Loads `lua/`: binds header names to KEYS and ARGV, pastes includes, checks calls and replies.

A script's header is its signature:

    --[[
    What it does.

    KEYS   turn events            names, in order; a last name with `...` takes a list
    ARGV   owner fence:n text     `:n` arrives in Lua as a number
    REPLY  OK | LOST why          the first element of every reply is one of these words
    ]]

In Python it is called by the same names: `scripts.turn_beat(turn=..., owner=..., fence=...)`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from redis.exceptions import NoScriptError

from brainq.errors import ScriptError
from brainq.state.connection import Client
from brainq.state.keys import Keys

LUA = Path(__file__).parent / "lua"
_HEADER = re.compile(r"\A--\[\[(.*?)\]\]\n", re.DOTALL)
_LINE = re.compile(r"^(KEYS|ARGV|REPLY)\s+(.*)$", re.MULTILINE)
_INCLUDE = re.compile(r"^-- @include (\S+)\n", re.MULTILINE)
_LUA_WORDS = {"end", "next", "type", "error", "now", "unpack", "select"}


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
    judges."""

    queues: Mapping[str, Doorbell]
    bells_key: str
    outbox_prefix: str

    def lua(self) -> str:
        keys = [f"if queue == '{word}' then return [==[{bell.key}]==]" for word, bell in self.queues.items()]
        texts = [
            f"if queue == '{word}' then return {_joined(bell.text)}" for word, bell in self.queues.items()
        ]
        return "\n".join(
            [
                f"local function bell_key(queue)\n  {' else'.join(keys)} end\nend",
                "local function bell_text(queue, ARGS, ARGSREPR, TASK_ID, ROOT_ID, TAG, TOOL)",
                f"  {' else'.join(texts)} end\nend",
                f"local BELLS_KEY = [==[{self.bells_key}]==]",
                f"local OUTBOX_PREFIX = [==[{self.outbox_prefix}]==]",
            ]
        )


def _joined(text: str) -> str:
    """A Lua expression that fills the placeholders in: plain concatenation, far cheaper than gsub on each ring."""
    parts = re.split(r"%([A-Z_]+)%", text)
    return " .. ".join(f"[==[{part}]==]" if i % 2 == 0 else part for i, part in enumerate(parts))


@dataclass(frozen=True, slots=True)
class Signature:
    """A script's header, parsed."""

    name: str
    keys: tuple[str, ...]
    args: tuple[str, ...]
    numbers: frozenset[str]
    replies: frozenset[str]
    more_keys: str = ""
    more_args: str = ""

    def prelude(self) -> str:
        lines = [f"local {name} = KEYS[{i}]" for i, name in enumerate(self.keys, 1)]
        for i, name in enumerate(self.args, 1):
            value = f"tonumber(ARGV[{i}])" if name in self.numbers else f"ARGV[{i}]"
            lines.append(f"local {name} = {value}")
        return "\n".join(lines) + "\n"


def signature(name: str, source: str) -> Signature:
    """Parse the header of `source`. Raises ScriptError when it lacks one or names a Lua word."""
    header = _HEADER.match(source)
    if not header:
        raise ScriptError(f"{name}.lua: must begin with a --[[ ... ]] header that names KEYS, ARGV and REPLY")
    lines = {kind: rest.split() for kind, rest in _LINE.findall(header[1])}
    if missing := {"KEYS", "ARGV", "REPLY"} - lines.keys():
        raise ScriptError(f"{name}.lua: the header lacks {', '.join(sorted(missing))}")
    more = {
        kind: next((word[:-3] for word in lines[kind] if word.endswith("...")), "")
        for kind in ("KEYS", "ARGV")
    }
    keys = tuple(word for word in lines["KEYS"] if not word.endswith("..."))
    args = [word for word in lines["ARGV"] if not word.endswith("...")]
    names = [word.removesuffix(":n") for word in args]
    if clash := _LUA_WORDS & {*keys, *names}:
        raise ScriptError(f"{name}.lua: {sorted(clash)} may not be used as a name")
    return Signature(
        name=name,
        keys=keys,
        args=tuple(names),
        numbers=frozenset(word[:-2] for word in args if word.endswith(":n")),
        replies=frozenset(part.split()[0] for part in " ".join(lines["REPLY"]).split("|")),
        more_keys=more["KEYS"],
        more_args=more["ARGV"],
    )


@cache
def _read(path: str) -> str:
    return (LUA / f"{path}.lua").read_text()


def _paste(source: str, seen: set[str]) -> str:
    def included(match: re.Match[str]) -> str:
        path = match[1]
        if path in seen:
            return ""
        seen.add(path)
        return _paste(_read(path), seen)

    return _INCLUDE.sub(included, source)


class Script:
    """One Lua operation, called by the names of its header."""

    def __init__(self, client: Client, name: str, doorbells: Doorbells) -> None:
        source = _read(name)
        self.signature = signature(name, source)
        body = _HEADER.sub("", source)
        text = self.signature.prelude() + _paste(body, set())
        self.text = text.replace("-- @doorbells", doorbells.lua())
        self.sha = hashlib.sha1(self.text.encode()).hexdigest()
        self._client = client

    def __call__(self, **given: Any) -> list[str]:
        """Run it. Raises ScriptError on a missing or unknown name, or an undeclared reply."""
        sig = self.signature
        try:
            keys: list[Any] = [given[name] for name in sig.keys]
            args: list[Any] = [given[name] for name in sig.args]
            if sig.more_keys:
                keys.extend(cast(Sequence[Any], given[sig.more_keys]))
            if sig.more_args:
                args.extend(cast(Sequence[Any], given[sig.more_args]))
        except KeyError as missing:
            raise ScriptError(f"{sig.name}: {missing} was not given; it takes {self._takes()}") from None
        expected = len(sig.keys) + len(sig.args) + bool(sig.more_keys) + bool(sig.more_args)
        if len(given) != expected:
            unknown = set(given) - {*sig.keys, *sig.args, sig.more_keys, sig.more_args}
            raise ScriptError(f"{sig.name}: {sorted(unknown)} is not among {self._takes()}")
        reply = self._run(keys, args)
        if reply[0] not in sig.replies:
            raise ScriptError(f"{sig.name}: replied {reply[0]!r}, its header declares {sorted(sig.replies)}")
        return reply

    def on(self, keys: Keys, session_id: str, turn_id: str, **given: Any) -> list[str]:
        """Run it on a session and a turn: their keys and ids are filled in."""
        sig = self.signature
        named = {name: keys.named(name, session_id, turn_id) for name in sig.keys if name not in given}
        ids = {"sid": session_id, "tid": turn_id}
        return self(
            **named, **{name: ids[name] for name in sig.args if name in ids and name not in given}, **given
        )

    def _run(self, keys: list[Any], args: list[Any]) -> list[str]:
        run = self._client.execute_command
        try:
            return cast(list[str], run("EVALSHA", self.sha, len(keys), *keys, *args))
        except NoScriptError:
            return cast(list[str], run("EVAL", self.text, len(keys), *keys, *args))

    def _takes(self) -> str:
        sig = self.signature
        return ", ".join(filter(None, [*sig.keys, sig.more_keys, *sig.args, sig.more_args]))


class Scripts:
    """All operations, as attributes: `scripts.turn_claim(...)`."""

    def __init__(self, client: Client, doorbells: Doorbells) -> None:
        self.client = client
        self._scripts = {
            path.stem: Script(client, path.stem, doorbells) for path in sorted(LUA.glob("*.lua"))
        }

    def __getattr__(self, name: str) -> Script:
        try:
            return self._scripts[name]
        except KeyError:
            raise AttributeError(f"there is no script {name}.lua") from None

    def all(self) -> Mapping[str, Script]:
        return self._scripts
