"""`brainq init`: a small project that runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

PROJECT = Path(__file__).parent / "project"
FILES = {
    "app.py": "app.py",
    "README.md": "README.md",
    "env.example": ".env.example",
    "gitignore": ".gitignore",
}
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")


def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The project's name, and its new directory.")],
) -> None:
    """Make a small project: a brain with two tools, without a key. Nothing is overwritten.

    \b
    Examples:
      brainq init shop && cd shop && brainq dev
    """
    from brainq.cli.output import say

    write_project(Path(name).absolute())
    say(f"made {name}/: {', '.join(FILES.values())}", style="green")
    typer.echo(f"cd {name}\nbrainq dev" if Path(name).resolve() != Path.cwd() else "brainq dev")


def write_project(directory: Path) -> None:
    """Write the project, named as its directory. Raises InvalidInput for a name or a directory that will not do."""
    from brainq.errors import InvalidInput

    name = directory.name
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            "NAME", f"{name!r} must be 1 to 40 of a-z 0-9 _ - and begin with a letter, such as shop"
        )
    there = [kept for kept in FILES.values() if (directory / kept).exists()]
    if there:
        raise InvalidInput("NAME", f"{directory}/ has {', '.join(there)} already; choose another name")
    directory.mkdir(parents=True, exist_ok=True)
    for shipped, written in FILES.items():
        (directory / written).write_text(named((PROJECT / shipped).read_text(), name))


def named(text: str, name: str) -> str:
    """The shipped project is called shop; this is the text for another name."""
    return text.replace("SHOP_", f"{name.upper().replace('-', '_')}_").replace("shop", name)
