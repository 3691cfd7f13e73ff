"""A docstring that names a class of another file, such as `adapters.redis.turns.RedisTurns`, names one that is
there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "brainq"
REFERENCE = re.compile(r"`((?:[a-z]\w*\.)+)([A-Z]\w*[a-z]\w*)`")
ELSEWHERE = ("subprocess", "ports")


def _classes() -> set[str]:
    return {
        ".".join((*path.relative_to(PACKAGE).with_suffix("").parts, node.name))
        for path in PACKAGE.rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef)
    }


def test_references_to_classes_lead_somewhere() -> None:
    known, checked, lost = _classes(), 0, list[str]()
    for path in sorted(PACKAGE.rglob("*.py")):
        for module, name in REFERENCE.findall(path.read_text()):
            if module.split(".")[0] in ELSEWHERE:
                continue
            checked += 1
            if f"{module}{name}".removeprefix("brainq.") not in known:
                lost.append(f"{path.relative_to(PACKAGE)}: `{module}{name}`")
    assert not lost
    assert checked > 3
