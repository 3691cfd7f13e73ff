"""Writes `brainq/state/typed_scripts.py` from the headers of the Lua scripts: `python -m ops.typed_scripts`."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

from brainq.state.keys import DERIVED, OF_SESSION, OF_TURN, is_shared
from brainq.state.script_headers import ENUMS, LITERALS, HeaderField, HeaderReply, Signature, parse_signature
from brainq.state.script_text import LUA, NAMES

TARGET = Path(__file__).parents[1] / "brainq/state/typed_scripts.py"
_HEAD = '''"""Generated from the headers in `lua/` by `python -m ops.typed_scripts`: change a header, then run that.

One method a script. A reply that says more than its word is a dataclass; the others are their words.
"""

# ruff: noqa: A002
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

{enums}
from brainq.state.connection import Client, as_mapping
from brainq.state.doorbells import Doorbells, Outbox
from brainq.state.keys import Keys
from brainq.state.scripts import LoadedScripts, undeclared

HEADERS = {headers}
"""Fingerprints: the loader refuses a script whose header is not the one its method was made from."""


def _closed(script: str, word: Any, declared: tuple[str, ...]) -> Any:
    """`word`, if it is one of those declared. Raises ScriptError."""
    if word not in declared:
        raise undeclared(script, word, declared)
    return word

'''
_CLASS = '''

class Scripts(LoadedScripts):
    """All scripts, by name. Each raises ScriptError on a reply its header does not declare."""

    def __init__(self, client: Client, keys: Keys, doorbells: Doorbells, outbox: Outbox | None = None) -> None:
        super().__init__(client, keys, doorbells, HEADERS, outbox)

'''


def generated() -> str:
    """The module's text."""
    signatures = [parse_signature(name, (LUA / f"{name}.lua").read_text()) for name in NAMES]
    headers = {sig.name: sig.fingerprint for sig in signatures}
    replies = "\n".join(_reply_class(sig, reply) for sig in signatures for reply in sig.replies if _says_more(reply))
    methods = "\n\n".join(_method(sig) for sig in signatures)
    body = replies + _CLASS + methods
    closed = {**ENUMS, **LITERALS}
    named = {name for name in closed if re.search(rf"\b{name}\b", body)}
    enums = [
        f"from {module} import {', '.join(sorted(name for name in named if closed[name] == module))}"
        for module in sorted({closed[name] for name in named})
    ]
    return _formatted(_HEAD.format(enums="\n".join(enums), headers=repr(headers)) + body + "\n")


def _formatted(text: str) -> str:
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(TARGET), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def _camel(*names: str) -> str:
    return "".join(part.capitalize() for name in names for part in name.lower().split("_"))


def _says_more(reply: HeaderReply) -> bool:
    return bool(reply.fields or reply.rest)


def _reply_class(sig: Signature, reply: HeaderReply) -> str:
    lines = [f"    {field.name}: {_reply_type(field)}" for field in reply.fields]
    if reply.rest:
        lines.append(f"    {reply.rest.name}: tuple[{_reply_type(reply.rest)}, ...]")
    name = _camel(sig.name, reply.word)
    return "\n".join(["", "@dataclass(frozen=True, slots=True)", f"class {name}:", *lines, ""])


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
        return f'_closed("{sig.name}", {item}, {words!r})'
    return f"{item} if {item} in {words!r} else {enums[0]}({item})" if words else f"{enums[0]}({item})"


def _read_rest(sig: Signature, field: HeaderField, place: int) -> str:
    if not field.choices:
        return f"tuple(reply[{place}:])"
    return f'tuple(_closed("{sig.name}", word, {field.choices!r}) for word in reply[{place}:])'


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
    args = [*map(_sent, sig.args), *([f"*{sig.more_args.name}"] if sig.more_args else [])]
    where = [f'"{sig.name}"', "session_id" if of_session else '""', "turn_id" if of_turn else '""']
    sent = [*where, f"[{', '.join(args)}]", *([f"[{', '.join(given)}]"] if given else [])]
    lines = _outcome(sig, f"self.run({', '.join(sent)})")
    return "\n".join(
        [
            f"    def {sig.name}({', '.join(parameters)}) -> {_outcome_type(sig)}:",
            *textwrap.wrap(
                f'"""{sig.about.split(". ")[0].rstrip(".:")}."""',
                118,
                initial_indent="        ",
                subsequent_indent="        ",
            ),
            *(f"        {line}" for line in lines),
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


def _outcome(sig: Signature, run: str) -> list[str]:
    """Python that runs the script, and returns what it replied."""
    fuller = [reply for reply in sig.replies if _says_more(reply)]
    if not fuller:
        return [f"return {run}[0]"]
    lines = [f"reply = {run}"]
    for reply in fuller:
        read = [f"{field.name}={_read(sig, field, i)}" for i, field in enumerate(reply.fields, 1)]
        if reply.rest:
            read.append(f"{reply.rest.name}={_read_rest(sig, reply.rest, len(reply.fields) + 1)}")
        made = f"{_camel(sig.name, reply.word)}({', '.join(read)})"
        is_last = reply is fuller[-1] and len(fuller) == len(sig.replies)
        lines += [f"return {made}"] if is_last else [f'if reply[0] == "{reply.word}":', f"    return {made}"]
    if len(fuller) < len(sig.replies):
        lines.append("return reply[0]")
    return lines


def main() -> None:
    TARGET.write_text(generated())
    print(f"{TARGET}: {len(NAMES)} scripts")


if __name__ == "__main__":
    main()
