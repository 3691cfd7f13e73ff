"""Writes `brainq/state/typed_scripts.py` from the headers of the Lua scripts: `python -m ops.typed_scripts`."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from brainq.state.keys import BASES, DERIVED, OF_SESSION, OF_TURN, is_shared, key_source
from brainq.state.script_headers import ENUMS, LITERALS, HeaderField, HeaderReply, Signature, parse_signature
from brainq.state.script_text import LUA, NAMES

TARGET = Path(__file__).parents[1] / "brainq/state/typed_scripts.py"
MAX_COLUMNS = 120
_HEAD = '''"""Generated from the headers in `lua/` by `python -m ops.typed_scripts`: change a header, then run that.

One method a script, which makes its call. A reply that says more than its word is a dataclass; the others are their
words.
"""

# ruff: noqa: A002, E501
# fmt: off
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

{enums}
from brainq.state.connection import Client, as_mapping
from brainq.state.doorbells import Doorbells, Outbox
from brainq.state.keys import Keys
from brainq.state.scripts import LoadedScripts, ReadReply, ScriptCall, undeclared

{headers}
"""Fingerprints: the loader refuses a script whose header is not the one its method was made from."""


def _closed(script: str, word: Any, declared: tuple[str, ...]) -> Any:
    """`word`, if it is one of those declared. Raises ScriptError."""
    if word not in declared:
        raise undeclared(script, word, declared)
    return word

'''
_CLASS = '''

{fuller}
"""How replies are read that say more than their word."""


class Scripts(LoadedScripts):
    """All scripts, by name: each method makes a call, which is to be run."""

    def __init__(self, client: Client, keys: Keys, doorbells: Doorbells, outbox: Outbox | None = None) -> None:
        super().__init__(client, keys, doorbells, HEADERS, FULLER, outbox)

'''


def generated() -> str:
    """The module's text."""
    signatures = [parse_signature(name, (LUA / f"{name}.lua").read_text()) for name in NAMES]
    headers = {sig.name: sig.fingerprint for sig in signatures}
    replies = "\n\n".join(_reply_class(sig, reply) for sig in signatures for reply in sig.replies if _says_more(reply))
    methods = "\n\n".join(_method(sig) for sig in signatures)
    body = replies + _CLASS.format(fuller=_fuller(signatures)) + methods
    closed = {**ENUMS, **LITERALS}
    named = {name for name in closed if re.search(rf"\b{name}\b", body)}
    enums = [
        f"from {module} import {', '.join(sorted(name for name in named if closed[name] == module))}"
        for module in sorted({closed[name] for name in named})
    ]
    kept = "\n".join(_filled("HEADERS = {", [f'"{name}": "{mark}"' for name, mark in headers.items()], "}", 0))
    return _HEAD.format(enums="\n".join(enums), headers=kept) + body + "\n"


def _filled(opening: str, items: list[str], closing: str, indent: int = 8) -> list[str]:
    """Lines of Python: the items in one with what is around them, or in as few as they fill."""
    margin = " " * indent
    one_line = f"{margin}{opening}{', '.join(items)}{closing}"
    if len(one_line) <= MAX_COLUMNS:
        return [one_line]
    lines = [f"{margin}    {items[0]},"]
    for item in items[1:]:
        if len(lines[-1]) + len(item) + 2 <= MAX_COLUMNS:
            lines[-1] += f" {item},"
        else:
            lines.append(f"{margin}    {item},")
    return [margin + opening, *lines, margin + closing]


def _camel(*names: str) -> str:
    return "".join(part.capitalize() for name in names for part in name.lower().split("_"))


def _says_more(reply: HeaderReply) -> bool:
    return bool(reply.fields or reply.rest)


def _reply_class(sig: Signature, reply: HeaderReply) -> str:
    lines = [f"    {field.name}: {_reply_type(field)}" for field in reply.fields]
    if reply.rest:
        lines.append(f"    {reply.rest.name}: tuple[{_reply_type(reply.rest)}, ...]")
    name = _camel(sig.name, reply.word)
    read = [_read(sig, field, place) for place, field in enumerate(reply.fields, 1)]
    if reply.rest:
        read.append(_read_rest(sig, reply.rest, len(reply.fields) + 1))
    lines += ["", "    @classmethod", "    def read(cls, reply: list[Any]) -> Self:"]
    lines += _filled("return cls(", read, ")")
    return "\n".join(["", "@dataclass(frozen=True, slots=True)", f"class {name}:", *lines])


def _fuller(signatures: list[Signature]) -> str:
    """Python of the table that has every such class, by script and word."""
    rows: list[str] = []
    for sig in signatures:
        read = [f'"{reply.word}": {_camel(sig.name, reply.word)}.read' for reply in sig.replies if _says_more(reply)]
        if read:
            rows.append(f'"{sig.name}": {{{", ".join(read)}}}')
    return "\n".join(_filled("FULLER: Mapping[str, Mapping[str, ReadReply]] = {", rows, "}", 0))


def _reply_type(field: HeaderField) -> str:
    plain = {
        "": "str",
        "n": "int",
        "b": "bool",
        "words": "tuple[str, ...]",
        "rows": "tuple[tuple[str, ...], ...]",
        "hash": "Mapping[str, str]",
    }
    return plain[field.kind] if field.kind in plain else _closed_type(field)


def _closed_type(field: HeaderField) -> str:
    names = [choice for choice in field.choices if choice in ENUMS or choice in LITERALS]
    words = [f'"{choice}"' for choice in field.choices if choice not in names]
    return " | ".join([*names, *([f"Literal[{', '.join(words)}]"] if words else [])])


def _read(sig: Signature, field: HeaderField, place: int) -> str:
    """Python that reads a field of the reply."""
    item = f"reply[{place}]"
    plain = {
        "": item,
        "n": f"int({item})",
        "b": f'{item} == "1"',
        "words": f"tuple({item}.split())",
        "rows": f'tuple(tuple(row.split()) for row in {item}.split(",") if row)',
        "hash": f"as_mapping({item})",
    }
    if field.kind in plain:
        return plain[field.kind]
    if field.kind in LITERALS:
        return f'_closed("{sig.name}", {item}, get_args({field.kind}))'
    enums = [choice for choice in field.choices if choice in ENUMS]
    words = tuple(choice for choice in field.choices if choice not in ENUMS)
    if not enums:
        return f'_closed("{sig.name}", {item}, {_tuple(words)})'
    return f"{item} if {item} in {_tuple(words)} else {enums[0]}({item})" if words else f"{enums[0]}({item})"


def _tuple(words: tuple[str, ...]) -> str:
    return repr(words).replace("'", '"')


def _read_rest(sig: Signature, field: HeaderField, place: int) -> str:
    if not field.choices:
        return f"tuple(reply[{place}:])"
    return f'tuple(_closed("{sig.name}", word, {_tuple(field.choices)}) for word in reply[{place}:])'


def _method(sig: Signature) -> str:
    of_turn = any(name in OF_TURN for name in sig.keys) or any(arg.name == "tid" for arg in sig.args)
    of_session = of_turn or any(name in OF_SESSION for name in sig.keys)
    given = [key for key in sig.keys if not is_shared(key)]
    assert tuple(given) == sig.keys[: len(given)], f"{sig.name}.lua: keys that only the caller knows come first"
    parameters = [
        "self",
        *(["session_id: str"] if of_session else []),
        *(["turn_id: str"] if of_turn else []),
        "*",
        *(f"{name}: str" for name in given),
        *(f"{arg.name}: {_argument_type(arg)}" for arg in sig.args if arg.name not in DERIVED),
        *([f"{sig.more_args.name}: Sequence[str]"] if sig.more_args else []),
    ]
    if parameters[-1] == "*":
        parameters.pop()
    values = [
        *given,
        *(key_source(name) for name in sig.keys if is_shared(name)),
        *map(_sent, sig.args),
        *([f"*{sig.more_args.name}"] if sig.more_args else []),
    ]
    bases = [base for base in BASES if any(value.startswith(base) for value in values)]
    session = "session_id" if of_session else '""'
    return "\n".join(
        [
            *_filled(f"def {sig.name}(", parameters, f") -> ScriptCall[{_outcome_type(sig)}]:", 4),
            *textwrap.wrap(
                f'"""{sig.about.split(". ")[0].rstrip(".:")}."""',
                118,
                initial_indent="        ",
                subsequent_indent="        ",
            ),
            *(f"        {base} = {BASES[base]}" for base in bases),
            *_filled(f'return ScriptCall(self, self.loaded["{sig.name}"], {session}, [', values, "])"),
        ]
    )


def _argument_type(arg: HeaderField) -> str:
    plain = {"": "str", "n": "int", "n?": "int | None", "f?": "float | None", "b": "bool", "words": "Sequence[str]"}
    return plain[arg.kind] if arg.kind in plain else _closed_type(arg)


def _sent(arg: HeaderField) -> str:
    name = arg.name
    if name in DERIVED:
        return DERIVED[name]
    sent = {
        "n?": f'"" if {name} is None else {name}',
        "f?": f'"" if {name} is None else repr({name})',
        "b": f'"1" if {name} else "0"',
        "words": f'" ".join({name})',
    }
    return sent.get(arg.kind, name)


def _outcome_type(sig: Signature) -> str:
    classes = [_camel(sig.name, reply.word) for reply in sig.replies if _says_more(reply)]
    words = [f'"{reply.word}"' for reply in sig.replies if not _says_more(reply)]
    return " | ".join([*classes, *([f"Literal[{', '.join(words)}]"] if words else [])])


def main() -> None:
    TARGET.write_text(generated())
    print(f"{TARGET}: {len(NAMES)} scripts")


if __name__ == "__main__":
    main()
