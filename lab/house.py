"""The size of the code base against the caps of `house.toml`: `python -m lab.house [--lower | --left]`.

Prints every figure that is above its cap, and nothing otherwise. `--lower` writes caps that are 2 % above what is
measured now, wherever that is lower than the cap that stands in the file. A cap is raised by hand, with a reason under
`[raised]`; the check fails if there is none.
"""

from __future__ import annotations

import argparse
import ast
import math
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path

ROOT = Path(__file__).parents[1]
CAPS = Path(__file__).with_name("house.toml")
SLACK = 1.02
SPLIT = ("engine", "adapters", "app", "runtime", "contrib")
"""Packages whose parts are counted one by one."""

ALIKE, MIN_FIELDS = 0.7, 4
"""Two data classes are alike if they share this part of the fields of the smaller one, which has at least this many."""

Figures = dict[str, int]


def package_of(path: Path) -> str:
    """Return the package that a file of `brainq/` is counted in."""
    parts = path.parts[:-1]
    if not parts:
        return "loose"
    return ".".join(parts[:2] if parts[0] in SPLIT and len(parts) > 1 else parts[:1])


def _sources() -> dict[Path, str]:
    """Return the text of each Python file of `brainq/`."""
    home = ROOT / "brainq"
    return {path.relative_to(home): path.read_text() for path in home.rglob("*.py")}


def _classes(text: str) -> Iterator[ast.ClassDef]:
    yield from (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef))


def is_protocol(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base).split("[")[0] == "Protocol" for base in node.bases)


def data_fields(node: ast.ClassDef) -> frozenset[str]:
    """Return the annotated fields of a data class or pydantic model; none for any other class."""
    bases = {ast.unparse(base) for base in node.bases}
    if not bases & {"Wire", "BaseModel"} and not any("dataclass" in ast.unparse(one) for one in node.decorator_list):
        return frozenset()
    return frozenset(
        part.target.id for part in node.body if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
    )


def alike(classes: Mapping[str, frozenset[str]]) -> list[tuple[str, str]]:
    """Return the pairs of data classes that share most of their fields."""
    counted = [(name, fields) for name, fields in classes.items() if len(fields) >= MIN_FIELDS]
    return [
        (one, other) for (one, a), (other, b) in combinations(counted, 2) if len(a & b) >= ALIKE * min(len(a), len(b))
    ]


def pairs(sources: Mapping[Path, str]) -> list[tuple[str, str]]:
    """Return the pairs of data classes of `sources` that share most of their fields, as `file: class`."""
    fields = {f"{path}: {node.name}": data_fields(node) for path, text in sources.items() for node in _classes(text)}
    return alike(fields)


def words_of_pages() -> int:
    """Return the words of docs/, README.md and CONTRIBUTING.md, as `wc -w` counts them."""
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    return sum(len(page.read_text().split()) for page in pages)


def measure() -> dict[str, Figures]:
    """Return each figure by table and name, as in `house.toml`."""
    sources = _sources()
    lines, files, protocols = Counter[str](), Counter[str](), Counter[str]()
    for path, text in sources.items():
        package = package_of(path)
        lines[package] += text.count("\n")
        files[package] += 1
        protocols[package] += sum(map(is_protocol, _classes(text)))
    tests = [path.read_text().count("\n") for path in (ROOT / "tests").rglob("*.py")]
    whole = {
        "lines": lines.total(),
        "lines_without_contrib": sum(count for package, count in lines.items() if not package.startswith("contrib")),
        "packages": len({path.parts[0] for path in sources if len(path.parts) > 1}),
        "loose_modules": files["loose"],
        "protocols": protocols.total(),
        "pairs_of_data_classes": len(pairs(sources)),
        "lines_of_tests": sum(tests),
        "words_of_pages": words_of_pages(),
        "files_in_the_root": sum(path.is_file() and not path.name.startswith(".") for path in ROOT.iterdir()),
    }
    return {"whole": whole, "lines": dict(lines), "files": dict(files), "protocols": dict(+protocols)}


def excesses(measured: Mapping[str, Figures], caps: Mapping[str, Figures], raised: Mapping[str, str]) -> list[str]:
    """Return a line for each figure above its cap, and for each raised cap without a reason."""
    found = [
        f"{table}.{name}: {figure}, and its cap is {cap}; make it smaller, or raise the cap and say why under [raised]"
        for table, figures in measured.items()
        for name, figure in figures.items()
        if figure > (cap := caps.get(table, {}).get(name, 0))
    ]
    return found + [f"raised.{name}: say why" for name, reason in raised.items() if not re.search(r"\w{3}", reason)]


def lowered(measured: Mapping[str, Figures], caps: Mapping[str, Figures]) -> dict[str, Figures]:
    """Return caps that are 2 % above what is measured, and nowhere above the caps that stand.

    A figure without a cap is given one; a cap without a figure is dropped.
    """
    return {
        table: {
            name: min(math.ceil(figure * SLACK) if figure > 20 else figure, caps.get(table, {}).get(name, sys.maxsize))
            for name, figure in sorted(figures.items())
        }
        for table, figures in measured.items()
    }


def written(caps: Mapping[str, Figures], kept: str) -> str:
    """Return the text of `house.toml`: the head and the tables `walks` and `raised` as they stand in `kept`."""
    head, _, rest = kept.partition("\n[whole]\n")
    tail = rest[rest.index("\n[walks]\n") :] if "\n[walks]\n" in rest else ""
    tables = [
        f"[{table}]\n"
        + "".join(f'"{name}" = {cap}\n' if "." in name else f"{name} = {cap}\n" for name, cap in rows.items())
        for table, rows in caps.items()
    ]
    return head + "\n" + "\n".join(tables) + tail


def rooms(measured: Mapping[str, Figures], caps: Mapping[str, Figures]) -> list[str]:
    """Return a line for each cap with what is left under it."""
    return [
        f"{table}.{name}: {caps[table][name] - figure} left of {caps[table][name]}"
        for table, figures in measured.items()
        for name, figure in figures.items()
        if name in caps[table]
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.house", description=__doc__)
    parser.add_argument("--lower", action="store_true", help="write caps 2 %% above what is measured now")
    parser.add_argument("--left", action="store_true", help="print the room under each cap")
    parser.add_argument("--pairs", action="store_true", help="name the pairs of data classes that are alike")
    given = parser.parse_args()
    if given.pairs:
        print("\n".join(f"{one}  ~  {other}" for one, other in pairs(_sources())))
        return 0
    kept = CAPS.read_text()
    caps = tomllib.loads(kept)
    measured = measure()
    if given.left:
        print("\n".join(rooms(measured, caps)))
        return 0
    if given.lower:
        CAPS.write_text(written(lowered(measured, caps), kept))
        return 0
    found = excesses(measured, caps, caps.get("raised", {}))
    print("\n".join(found), end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
