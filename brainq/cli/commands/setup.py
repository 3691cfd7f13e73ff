"""`brainq init`, `doctor`, `brains` and `schema`: set up a project and check it before the first turn."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from brainq.cli.options import AsJson
from brainq.cli.output import clean, note, print_json, print_rows, stdout
from brainq.errors import ExitCode, InvalidInput

PROJECT = Path(__file__).parents[1] / "project"
PROJECT_FILES = {"app.py": "app.py", "README.md": "README.md", "env.example": ".env.example", "gitignore": ".gitignore"}
_PROJECT_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")


def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the project and of its new directory.")],
) -> None:
    """Create a small project that needs no API key. Nothing is overwritten.

    \b
    Examples:
      brainq init shop && cd shop && brainq dev
    """
    write_project(Path(name).absolute())
    note(f"created {name}/: {', '.join(PROJECT_FILES.values())}", style="green")
    typer.echo(f"cd {name}\nbrainq dev" if Path(name).resolve() != Path.cwd() else "brainq dev")


def write_project(directory: Path) -> None:
    """Write the project, named like its directory. Raises InvalidInput for a bad name or existing files."""
    name = directory.name
    if not _PROJECT_NAME.fullmatch(name):
        raise InvalidInput(
            "NAME", f"{name!r} must begin with a letter and have 1 to 40 characters of a-z 0-9 _ -, such as shop"
        )
    there = [path for path in PROJECT_FILES.values() if (directory / path).exists()]
    if there:
        raise InvalidInput("NAME", f"{directory}/ already has {', '.join(there)}; choose another name")
    directory.mkdir(parents=True, exist_ok=True)
    for shipped, written in PROJECT_FILES.items():
        (directory / written).write_text(with_project_name((PROJECT / shipped).read_text(), name))


def with_project_name(text: str, name: str) -> str:
    """Replace `shop`, the name of the shipped example project, with `name` in a shipped file's text."""
    return text.replace("SHOP_", f"{name.upper().replace('-', '_')}_").replace("shop", name)


def doctor(
    before_upgrade: Annotated[
        bool,
        typer.Option("--before-upgrade", help="Check whether this build can replace the running one."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check the setup, with a remedy for each problem.

    It checks libraries, the brain, SQL, Redis, queues and workers. Each line begins with ok, warn or FAIL; the exit
    code is 1 if anything FAILs.

    \b
    Examples:
      brainq doctor
      brainq doctor --before-upgrade
      brainq -A shop.agent:brain doctor --json
    """
    from rich.text import Text

    from brainq.cli.doctor import run_checks, run_upgrade_checks

    console = stdout()
    styles = {"ok": "green", "warn": "yellow", "FAIL": "bold red"}
    results = []
    for check in run_upgrade_checks() if before_upgrade else run_checks():
        results.append(check)
        if not as_json:
            line = Text(f"{check.level:<5}", styles[check.level]).append(f"{check.name:<16}", "bold")
            console.print(line.append(clean(check.said), "default"), soft_wrap=True)
            if check.remedy:
                console.print(Text(" " * 21 + check.remedy, styles[check.level]), soft_wrap=True)
    if as_json:
        print_json(results)
    raise typer.Exit(ExitCode.FAILED if any(check.level == "FAIL" for check in results) else ExitCode.OK)


def brains(as_json: AsJson = False) -> None:
    """List the brains with their models and tools. The first is the default.

    BRAINQ_APP, or -A, names them: one Brain, or a list, tuple or mapping of several. --json has the tools'
    descriptions, too.

    \b
    Examples:
      brainq brains
      brainq -A shop.agents:brains brains
      brainq submit s1 "Where is my parcel?" --brain support
    """
    from brainq.cli.pages.fleet import brains_table
    from brainq.engine.brain.brains import describe_brains, load_brains
    from brainq.runtime.settings.deployment import load_settings

    print_rows(describe_brains(load_brains(load_settings().app)), brains_table, "no brains", as_json=as_json)


class SchemaName(StrEnum):
    SUBMIT = "submit"
    EVENT = "event"
    RESULT = "result"


def schema(
    name: Annotated[SchemaName, typer.Argument(metavar="NAME", help="The schema to print: submit, event or result.")],
) -> None:
    """Print a JSON schema for programs in other languages. It is draft 2020-12.

    submit: the arguments of the Celery task brainq.turn.submit. event: an event of a turn. result: the result of a
    turn. The gateway describes its HTTP routes at /v1/openapi.json.

    \b
    Examples:
      brainq schema submit > submit.schema.json
      brainq schema event | npx json-schema-to-typescript > event.ts
    """
    import json
    import sys

    from brainq.client.schemas import schema_of

    json.dump(schema_of(name.value), sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")
