"""`brainq` commands in this process, which saves each of them a second of imports."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import typer.main

from brainq.cli.main import main


@dataclass(frozen=True)
class Ran:
    """The output and the exit code of a command."""

    code: int
    out: str
    err: str


Brainq = Callable[..., Ran]
# typer makes all commands anew for each command line, which takes longer than most commands.
_made = functools.cache(typer.main.get_command)


def commands(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Brainq:
    """Return a runner of commands such as `brainq("show", "k1")`, in this process's environment and working
    directory."""
    monkeypatch.setattr(typer.main, "get_command", _made)

    def run(*arguments: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["brainq", *arguments])
        code: object = 0
        try:
            main()
        except SystemExit as left:
            code = left.code
        printed = capsys.readouterr()
        return Ran(int(str(code or 0)), printed.out, printed.err)

    return run
