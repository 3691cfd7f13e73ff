"""Every field that a class's docstring describes (`name   what it is`, or `name: what it is.`) is one of the class."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import brainq

ROOT = Path(brainq.__file__).parent
NAMES = r"([a-z_][a-z0-9_]*(?:, [a-z_][a-z0-9_]*)*)"
IN_A_TABLE = re.compile(NAMES + r" {2,}\S")
BEFORE_A_COLON = re.compile(NAMES + r": \S")


def classes() -> Iterator[tuple[Path, ast.ClassDef]]:
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                yield path, node


def documented(doc: str) -> Iterator[str]:
    """Yield the names that a docstring describes, one or several a line. A word with a colon inside prose is none."""
    is_prose = False
    for line in inspect.cleandoc(doc).splitlines():
        found = IN_A_TABLE.match(line) or (None if is_prose else BEFORE_A_COLON.match(line))
        if found is not None:
            yield from found[1].split(", ")
        is_prose = found is None and bool(line.strip()) and not line.startswith(" ")


def own_names(node: ast.ClassDef) -> Iterator[str]:
    for inner in ast.walk(node):
        match inner:
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.FunctionDef(name=name) | ast.arg(arg=name):
                yield name
            case ast.AnnAssign(target=ast.Attribute(attr=name)) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.Assign(targets=targets):
                for target in targets:
                    for each in ast.walk(target):
                        if isinstance(each, ast.Name | ast.Attribute):
                            yield each.id if isinstance(each, ast.Name) else each.attr
            case ast.Constant(value=str(text)) if text.isidentifier():
                yield text  # an enum's value, or the name of a field that is made at run time
            case _:
                pass


def bases(node: ast.ClassDef) -> Iterator[str]:
    for base in node.bases:
        inner = base.value if isinstance(base, ast.Subscript) else base
        yield inner.attr if isinstance(inner, ast.Attribute) else inner.id if isinstance(inner, ast.Name) else ""


def test_documented_fields_exist() -> None:
    found = list(classes())
    by_name: dict[str, list[ast.ClassDef]] = {}
    for _, node in found:
        by_name.setdefault(node.name, []).append(node)

    @cache
    def names(node: ast.ClassDef) -> set[str]:
        inherited = (names(each) for base in bases(node) for each in by_name.get(base, ()) if each is not node)
        return set(own_names(node)).union(*inherited)

    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}: {name}"
        for path, node in found
        for name in documented(ast.get_docstring(node) or "")
        if not {name, f"_{name}"} & names(node)
    ]
    assert not wrong, "described, and not there:\n" + "\n".join(wrong)
