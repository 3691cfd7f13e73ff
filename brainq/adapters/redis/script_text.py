"""The text of a script: its file in `lua/`, and the parts of the included libs that it uses.

Redis runs the whole text at each call, so every function in it is made again each time, called or not. Therefore only
what the body reaches is pasted. Below a line `-- @lazy` is a function that most calls do not need: the items that only
it needs are pasted into it, and made when it is called.

A file is a list of items that begin at its left margin: functions, CONSTANTS, variables in lower case, statements. A
lib's variables hold what a script remembers while it runs. Each is pasted once, and never into a function.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from brainq.adapters.redis.script_headers import HEADER, Signature, parse_signature
from brainq.errors import ScriptError

LUA = Path(__file__).parent / "lua"
NAMES = tuple(sorted(path.stem for path in LUA.glob("*.lua")))
Generated = tuple[tuple[str, str], ...]
"""Lua that is not in a file: the name by which it is included, and its text."""

_INCLUDE = re.compile(r"-- @include (\S+)")
_LAZY = "-- @lazy"
_GOES_ON = re.compile(r"[ )}\]]|end\b|else")  # The beginnings of lines that continue the item above.
_FUNCTION = re.compile(r"(?:local )?function (\w+)\(([^)]*)\)")
_LOCALS = re.compile(r"local ((?:\w+, )*\w+)")
_READ_BEGINS = re.compile(r" *local \w+ = read(?:_call)?\(")
_READ = re.compile(
    r"(?P<indent> *)local (?P<name>\w+) = (?:read\((?P<key>\w+)|read_call\((?P<call>\w+)), \{(?P<fields>['\w,\s]+)\}\)"
)
_OWN = re.compile(r"(?:local(?: function)?|for) ((?:\w+, )*\w+)")
_TOKEN = re.compile(
    r"--[^\n]*|\[==\[.*?\]==\]|'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|(?P<name>[A-Za-z_]\w*)|==|\S", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a script's text, and where it is from."""

    text: str
    file: str
    number: int


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """A function, local or statement, with the comments before it.

    defines      the names that it defines
    uses         the names in it that another item may define
    parameters   the parameters of a function; `own` are its local names
    is_variable  whether it is a lib's variable, in lower case
    is_body      whether it runs when the script does, so that it is always pasted
    """

    lines: tuple[Line, ...]
    defines: frozenset[str]
    uses: frozenset[str]
    parameters: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    is_lazy: bool = False
    is_variable: bool = False
    is_body: bool = False


@dataclass(frozen=True, slots=True)
class ScriptText:
    """A script's header, its whole text, and the origin of each line."""

    signature: Signature
    text: str
    lines: tuple[Line, ...]

    def place(self, number: int) -> str:
        """Return the file and line of line `number` (from 1) of the text."""
        line = self.lines[min(number, len(self.lines)) - 1]
        return f"{line.file}:{line.number}"


@cache
def read_signature(name: str) -> Signature:
    """Parse the header of a script. Raises ScriptError."""
    return parse_signature(name, _read(name))


@cache
def read_script(name: str, generated: Generated) -> ScriptText:
    """Return the text of a script, cached per process. Raises ScriptError."""
    signature, file = read_signature(name), f"{name}.lua"
    header = HEADER.match(_read(name))
    assert header
    head = [Line(text, file, at) for at, text in enumerate(header[0].splitlines(), 1)]
    names = [Line(text, file, 1) for text in signature.prelude().splitlines()]
    items = list(_with_includes(name, dict(generated), set()))
    roots = [item for item in items if item.is_body]
    lines = (*head, *names, *_paste(items, roots, set()))
    return ScriptText(signature, "\n".join(line.text for line in lines) + "\n", lines)


@cache
def _read(path: str) -> str:
    return (LUA / f"{path}.lua").read_text()


def _with_includes(path: str, generated: dict[str, str], included: set[str]) -> Iterator[Item]:
    """Yield the items of a file, with each include replaced by the items of its file when it first occurs."""
    for item in _items(path, generated.get(path)):
        if isinstance(item, Item):
            yield item
        elif item not in included:
            included.add(item)
            yield from _with_includes(item, generated, included)


@cache
def _items(path: str, generated: str | None) -> tuple[Item | str, ...]:
    """Return the items of a file or of generated text, and the paths of its includes."""
    source = _read(path) if generated is None else generated
    header = HEADER.match(source)
    skipped = header[0].count("\n") if header else 0
    found: list[Item | str] = []
    block: list[Line] = []

    def end_item() -> None:
        nonlocal block
        while block and not block[-1].text:
            block.pop()
        if block and not _is_comment(block[-1].text):
            found.append(_item(tuple(block), is_script=header is not None))
        block = []

    for line in _lines(f"{path}.lua", source.splitlines()[skipped:], skipped + 1):
        if include := _INCLUDE.fullmatch(line.text):
            end_item()
            found.append(include[1])
            continue
        if line.text and not _GOES_ON.match(line.text) and block and not _is_comment(block[-1].text):
            end_item()
        if line.text or block:
            block.append(line)
    end_item()
    return tuple(found)


def _lines(file: str, texts: Sequence[str], first: int) -> Iterator[Line]:
    """Yield the lines with each `read` of named fields expanded to a table constructor, which is cheaper."""
    begun: list[str] = []
    for number, text in enumerate(texts, first):
        if begun or _READ_BEGINS.match(text):
            begun.append(text)
            if not text.endswith(")"):
                continue
            read = _READ.fullmatch("\n".join(begun))
            for each in _spelled_out(read) if read else begun:
                yield Line(each, file, number - len(begun) + 1)
            begun = []
        else:
            yield Line(text, file, number)


def _spelled_out(read: re.Match[str]) -> tuple[str, str]:
    indent, name, key, call = read["indent"], read["name"], read["key"], read["call"]
    fields = re.findall(r"'(\w+)'", read["fields"])
    asked = [f"{call} .. ':{field}'" if call else f"'{field}'" for field in fields]
    values = [f"{field} = {name}[{i}]" for i, field in enumerate(fields, 1)]
    return (
        f"{indent}local {name} = redis.call('HMGET', {key or 'trace'}, {', '.join(asked)})",
        f"{indent}{name} = {{{', '.join(values)}}}",
    )


def _is_comment(text: str) -> bool:
    return text.startswith("--")


def _item(lines: tuple[Line, ...], *, is_script: bool) -> Item:
    text = "\n".join(line.text for line in lines)
    code = "\n".join(line.text for line in lines if not _is_comment(line.text))
    own = frozenset(name for names in _OWN.findall(code[1:]) for name in names.split(", "))
    uses = frozenset(_names(code))
    if function := _FUNCTION.match(code):
        return Item(
            lines,
            frozenset({function[1]}),
            uses - {function[1]},
            parameters=frozenset(function[2].split(", ")),
            own=own,
            is_lazy=_LAZY in text,
        )
    local = _LOCALS.match(code)
    defines = frozenset(local[1].split(", ")) if local else frozenset[str]()
    is_variable = not is_script and any(name.islower() for name in defines)
    return Item(lines, defines, uses - defines, is_variable=is_variable, is_body=is_script or not local)


def _names(code: str) -> Iterator[str]:
    """Yield the names in a piece of Lua, except names of fields."""
    brackets: list[str] = []
    before, key = "", ""
    for token in _TOKEN.finditer(code):
        text = token[0]
        if key and text != "=":
            yield key
        key = ""
        if text in "({[":
            brackets.append(text)
        elif text in ")}]" and brackets:
            brackets.pop()
        elif token["name"] and before not in (".", ":"):
            if brackets[-1:] == ["{"] and before in ("{", ","):
                key = text
            else:
                yield text
        before = text
    if key:
        yield key


def _paste(items: Sequence[Item], roots: Iterable[Item], outside: Collection[Item]) -> Iterator[Line]:
    """Yield the lines of `roots` and of everything they use, in the order of `items`. `outside` is already pasted."""
    inside = _reached(items, roots, outside)
    visible = {*outside, *inside}
    file = ""
    for item in items:
        if item not in inside:
            continue
        if item.lines[0].file != file:
            file = item.lines[0].file
            yield Line(f"-- {file}", file, item.lines[0].number)
        if item.is_lazy:
            yield from _paste_lazy(items, item, visible)
        else:
            yield from item.lines


def _paste_lazy(items: Sequence[Item], function: Item, visible: Collection[Item]) -> Iterator[Line]:
    """Yield a function's lines, with the items that it needs after its first line."""
    begins = next(line for line in function.lines if not _is_comment(line.text))
    if begins is function.lines[-1]:
        raise ScriptError(f"{begins.file}:{begins.number}: a lazy function has lines of its own")
    needed = [item for item in items if item.defines & function.uses and item not in visible]
    for item in _reached(items, needed, visible):
        if hidden := item.uses & function.parameters - item.parameters - item.own:
            raise ScriptError(f"{begins.file}:{begins.number}: a parameter hides {sorted(hidden)} from what is pasted")
    at = function.lines.index(begins) + 1
    yield from function.lines[:at]
    for line in _paste(items, needed, visible):
        yield Line(f"  {line.text}" if line.text else "", line.file, line.number)
    yield from function.lines[at:]


def _reached(items: Sequence[Item], roots: Iterable[Item], outside: Collection[Item]) -> set[Item]:
    """Return the items that `roots` use. Of items that only lazy functions use, only variables are included."""
    by_name: dict[str, list[Item]] = {}
    for item in items:
        for name in item.defines:
            by_name.setdefault(name, []).append(item)

    def reach(found: set[Item], item: Item, *, through_lazy: bool) -> None:
        if item in found or item in outside:
            return
        found.add(item)
        if item.is_lazy and not through_lazy:
            return
        for name in item.uses:
            for used in by_name.get(name, ()):
                reach(found, used, through_lazy=through_lazy)

    found: set[Item] = set()
    everything: set[Item] = set()
    for root in roots:
        reach(everything, root, through_lazy=True)
        reach(found, root, through_lazy=False)
    for item in items:
        if item in everything and item.is_variable:
            reach(found, item, through_lazy=False)
    return found
