"""A script's header, parsed: its keys, its arguments and its replies, with their types.

    --[[
    What it does.

    KEYS   place turn history              names, in order; first those that only the caller knows
    ARGV   owner fence:n items...          `name:type`, else a text; a last name with `...` takes a list
    REPLY  GO fence:n | DROP why:gone/held | LOST    words, each with its fields

An entry may go on in the next line, indented. Types:

    type        in Python                    in Lua
    (none)      str                          a text
    n           int                          a number
    n?          int | None                   a number, or '' for None
    f?          float | None                 a text as precise as the number, or '' for None
    b           bool                         '1' or '0'
    words       a sequence of names          one text, with blanks between them
    rows        tuples of words              one text, with commas between the tuples
    hash        a mapping (replies only)     what HGETALL gives
    a/b/c       Literal["a", "b", "c"]       a text
    TurnState   that type of `contracts`     a text; `TurnState/gone`: or this word
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from brainq.errors import ScriptError

ENUMS = {
    "Effect": "brainq.contracts.status",
    "Ending": "brainq.contracts.status",
    "StopReason": "brainq.contracts.status",
    "TraceStatus": "brainq.contracts.status",
    "TurnState": "brainq.contracts.status",
}
"""The enums that a header may name, and their modules."""

LITERALS = {
    "ApprovalState": "brainq.contracts.people",
    "HoldPolicy": "brainq.contracts.people",
    "OnBusy": "brainq.contracts.turn",
    "Priority": "brainq.contracts.turn",
    "TurnKind": "brainq.contracts.turn",
}
"""The closed sets of words that a header may name, and their modules."""

HEADER = re.compile(r"\A--\[\[(.*?)\]\]\n", re.DOTALL)
_HEADER_ENTRY = re.compile(r"^(KEYS|ARGV|REPLY)[ ]+(.*(?:\n[ ]+.*)*)", re.MULTILINE)
_PLAIN = frozenset({"", "n", "n?", "f?", "b", "words", "rows", "hash"})
_LUA_WORDS = {"end", "next", "type", "error", "now", "unpack", "select"}


@dataclass(frozen=True, slots=True)
class HeaderField:
    """A named value of a call or a reply; `kind` is its type as the header writes it."""

    name: str
    kind: str = ""

    @property
    def choices(self) -> tuple[str, ...]:
        """Return the words and enums of a closed type, or none for other types."""
        return () if self.kind in _PLAIN else tuple(self.kind.split("/"))


@dataclass(frozen=True, slots=True)
class HeaderReply:
    """One of a script's replies: its word, the fields that follow, and a last field that takes all the rest."""

    word: str
    fields: tuple[HeaderField, ...] = ()
    rest: HeaderField | None = None


@dataclass(frozen=True, slots=True)
class Signature:
    """A script's header, parsed. `more_args` is the list at the end."""

    name: str
    about: str
    keys: tuple[str, ...]
    args: tuple[HeaderField, ...]
    replies: tuple[HeaderReply, ...]
    more_args: HeaderField | None = None

    @property
    def words(self) -> frozenset[str]:
        return frozenset(reply.word for reply in self.replies)

    @property
    def fingerprint(self) -> str:
        """Return a value that changes with the interface, so that code generated from an older header is recognized."""
        parts = (self.keys, self.args, self.more_args, self.replies)
        return hashlib.sha1(repr(parts).encode()).hexdigest()[:10]

    def prelude(self) -> str:
        """Return the Lua that binds the header's names."""
        lines = [f"local {name} = KEYS[{i}]" for i, name in enumerate(self.keys, 1)]
        lines += [f"local {arg.name} = {_binding(arg, i)}" for i, arg in enumerate(self.args, 1)]
        if self.more_args:
            name, before = self.more_args.name, len(self.args)
            lines.append(f"local {name} = {{}}\nfor i = {before + 1}, #ARGV do {name}[i - {before}] = ARGV[i] end")
        return "\n".join(lines) + "\n"


def _binding(arg: HeaderField, place: int) -> str:
    match arg.kind:
        case "n":
            return f"tonumber(ARGV[{place}])"
        case "n?":
            return f"tonumber(ARGV[{place}]) or ''"
        case _:
            return f"ARGV[{place}]"


def parse_signature(name: str, source: str) -> Signature:
    """Parse the header of `source`. Raises ScriptError if it has no header, or names a Lua word or an unknown type."""
    header = HEADER.match(source)
    if not header:
        raise ScriptError(f"{name}.lua: must begin with a --[[ ... ]] header that names KEYS, ARGV and REPLY")
    entries = {kind: rest.split() for kind, rest in _HEADER_ENTRY.findall(header[1])}
    if missing := {"KEYS", "ARGV", "REPLY"} - entries.keys():
        raise ScriptError(f"{name}.lua: the header lacks {', '.join(sorted(missing))}")
    keys = tuple(entries["KEYS"])
    args, more_args = _parse_fields(name, entries["ARGV"])
    if clash := _LUA_WORDS & {*keys, *(arg.name for arg in args)}:
        raise ScriptError(f"{name}.lua: {sorted(clash)} may not be used as a name")
    replies = " ".join(entries["REPLY"]).split(" | ")
    return Signature(
        name=name,
        about=" ".join(_HEADER_ENTRY.sub("", header[1]).split()),
        keys=keys,
        args=args,
        replies=tuple(_parse_reply(name, *reply.split()) for reply in replies),
        more_args=more_args,
    )


def _parse_reply(name: str, word: str, *fields: str) -> HeaderReply:
    return HeaderReply(word, *_parse_fields(name, list(fields)))


def _parse_fields(script: str, words: list[str]) -> tuple[tuple[HeaderField, ...], HeaderField | None]:
    """Return the fields that these words name, and the list at their end."""
    rest = HeaderField(*words.pop()[:-3].split(":", 1)) if words and words[-1].endswith("...") else None
    fields = tuple(HeaderField(*word.split(":", 1)) for word in words)
    for field in (*fields, *([rest] if rest else [])):
        for choice in field.choices:
            if not (choice in ENUMS or choice in LITERALS or re.fullmatch(r"[a-z_]{2,}|[A-Z_]{2,}", choice)):
                raise ScriptError(f"{script}.lua: {field.name} is of an unknown type {choice!r}")
    return fields, rest
