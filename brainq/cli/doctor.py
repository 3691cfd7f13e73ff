"""`brainq doctor`: what is wrong with this setup."""

from __future__ import annotations

import typer

from brainq.cli.options import App, AsJson


def doctor(as_json: AsJson = False, app: App = "") -> None:
    """Check the setup, and say what to do.

    Looks at libraries, the brain, SQL, Redis, queues and workers. Each line says ok, warn or FAIL, and what to
    do; the exit code is 1 if anything FAILs.

    \b
    Examples:
      brainq doctor
      brainq -A shop.agent:brain doctor --json
    """
    from rich.text import Text

    from brainq.cli.checks import run_checks
    from brainq.cli.codes import Exit
    from brainq.cli.output import print_json, stdout
    from brainq.cli.style import clean

    console = stdout()
    styles = {"ok": "green", "warn": "yellow", "FAIL": "bold red"}
    found = []
    for check in run_checks():
        found.append(check)
        if not as_json:
            line = Text(f"{check.level:<5}", styles[check.level]).append(f"{check.name:<16}", "bold")
            console.print(line.append(clean(check.said), "default"), soft_wrap=True)
            if check.remedy:
                console.print(Text(" " * 21 + check.remedy, styles[check.level]), soft_wrap=True)
    if as_json:
        print_json([check.as_json() for check in found])
    raise typer.Exit(Exit.FAILED if any(check.level == "FAIL" for check in found) else Exit.OK)
