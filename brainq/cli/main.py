"""The `brainq` command: its subcommands, and how it reports errors.

Each command is in its own file, which imports only typer until the command runs, so that `brainq --help` is quick.
"""

from __future__ import annotations

import errno
import os
import sys
from textwrap import fill
from typing import Annotated, Any

import typer

from brainq.cli.commands import (
    approvals,
    budgets,
    bulk,
    control,
    db,
    erase,
    keys,
    mcp,
    memory,
    monitor,
    move,
    redis,
    run,
    schedule,
    sessions,
    setup,
    spend,
    stops,
    submit,
    token,
    turns,
    versions,
    webhook,
)
from brainq.cli.help import HelpCommand, HelpGroup
from brainq.cli.options import App, takes_app
from brainq.cli.output import note
from brainq.contracts.actor import acting_as
from brainq.errors import BrainqError, ExitCode, kind_of
from brainq.runtime.observe.tracebacks import TRACEBACK_VARIABLE
from brainq.runtime.settings.environment import WARNED_NAMES, mistyped_names, read_env_file

app = typer.Typer(
    name="brainq",
    cls=HelpGroup,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
COMMANDS: dict[str, dict[str, Any]] = {
    "Begin": {"init": setup.init, "dev": run.dev, "doctor": setup.doctor, "brains": setup.brains},
    "Turns": {
        "submit": submit.submit,
        "list": turns.list_turns,
        "show": turns.show,
        "tail": turns.tail,
        "cassette": turns.cassette,
        "steer": control.steer,
        "cancel": control.cancel,
        "schedule": schedule.app,
        "finalize": turns.finalize,
        "bulk": bulk.bulk,
    },
    "Approvals and holds": {
        "approvals": approvals.approvals,
        "approve": approvals.approve,
        "deny": approvals.deny,
        "hold": control.hold,
        "release": control.release,
        "complete": approvals.complete,
        "fail": approvals.fail,
    },
    "Sessions": {
        "sessions": sessions.list_sessions,
        "session": sessions.session,
        "history": sessions.history,
        "pause": sessions.pause,
        "resume": sessions.resume,
        "interrupt": sessions.interrupt,
        "drop": sessions.drop,
        "ready": sessions.ready,
        "compact": sessions.compact,
        "memory": memory.app,
    },
    "Running a fleet": {
        "up": run.up,
        "worker": run.worker,
        "serve": run.serve,
        "fleet": monitor.fleet,
        "scale": monitor.scale,
        "versions": versions.versions,
        "cells": monitor.cells,
        "move": move.move,
        "metrics": monitor.metrics,
        "flower": monitor.flower,
        "db": db.app,
        "redis": redis.app,
    },
    "Stops, costs, erasure": {
        "stop": stops.stop,
        "lift": stops.lift,
        "stops": stops.stops,
        "audit": stops.audit,
        "budgets": budgets.app,
        "spend": spend.spend,
        "erase": erase.erase,
        "keys": keys.app,
    },
    "Access for other programs": {"token": token.app, "mcp": mcp.app, "webhook": webhook.app, "schema": setup.schema},
}
BRAINLESS = ("init", "schema")  # commands without -A: one creates the brain, the other does not depend on it
for panel, commands in COMMANDS.items():
    for name, command in commands.items():
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, cls=HelpGroup, rich_help_panel=panel)
        else:
            command = command if name in BRAINLESS else takes_app(command)
            app.command(name, cls=HelpCommand, rich_help_panel=panel)(command)


MEANINGS = {
    ExitCode.OK: "the turn completed, or the command succeeded",
    ExitCode.FAILED: (
        "the turn failed or was rejected; a check of `brainq doctor` failed; a step failed again in "
        "`brainq finalize retry`"
    ),
    ExitCode.USAGE: "the usage or the input was invalid",
    ExitCode.TIMED_OUT: "the turn timed out",
    ExitCode.CANCELLED: "the turn was cancelled",
    ExitCode.NOT_FOUND: "the turn, approval, hold, stop, token or dead delivery does not exist",
    ExitCode.SETUP: "Redis, SQL, the brain, a key, an extra, a port or disk space is not available",
    ExitCode.WAITED_OUT: "--timeout-s ran out; the turn continues",
    ExitCode.REFUSED: "refused: the session is busy, another turn is live, a turn has too much unread input, the "
    "approval has "
    "another decision, a token was refused, a stop forbids it, a tenant was not moved, or the program is already "
    "running",
    ExitCode.BUG: "a bug in brainq; BRAINQ_TRACEBACK=1 shows where",
    ExitCode.INTERRUPTED: "Ctrl+C",
}
_INDENT = " " * 7
EXIT_CODE_HELP = "\b\nExit codes:\n" + "\n".join(
    fill(meaning, 78, initial_indent=f"  {code.value:<4} ", subsequent_indent=_INDENT)
    for code, meaning in MEANINGS.items()
)
"""The list of exit codes in `--help`."""
_UNREACHABLE_ERRORS = ("ConnectionError", "TimeoutError", "BusyLoadingError")
_SERVICES = ("redis", "kombu", "sqlalchemy", "psycopg", "sqlite3")
_FILE_ERRNOS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR}


def _show_version(wanted: bool) -> None:
    if wanted:
        from brainq import __version__

        typer.echo(f"brainq {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True, epilog=EXIT_CODE_HELP)
def root(
    context: typer.Context,
    app: App = "",
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """LLM agent turns as distributed work on Celery and Redis.

    \b
    Try it, with two terminals in one directory:
      brainq init shop && cd shop                 a small project without a key
      brainq dev                                  Redis, SQLite and all workers
      brainq submit s1 "count apples" --follow    in the other terminal
      brainq show 01k...                          what happened, what happens next

    `brainq COMMAND --help` has examples. `brainq --install-completion` sets up
    your shell's completion of commands and turn ids.

    \b
    Settings come from the environment, and from .env in the working directory:
      BRAINQ_APP         the brain or brains, as module:variable (or use -A)
      BRAINQ_REDIS_URL   default: of `brainq dev` in BRAINQ_DATA_DIR (.brainq)
      BRAINQ_SQL_URL     default: SQLite in BRAINQ_DATA_DIR
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run a command. An error is printed as one red line, without a traceback, and sets the exit code."""
    try:
        read_env_file()
        _warn_of_mistyped_settings()
        with acting_as(stops.shell_user(), "cli"):
            app()
    except BrainqError as error:
        _exit_with_message(str(error), kind_of(error).exit)
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        # The reader of the output has closed the pipe, as `| head` does. This keeps Python from reporting it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(ExitCode.OK)
    except Exception as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        _exit_with_message(*describe_error(error))


def _warn_of_mistyped_settings() -> None:
    mistyped = mistyped_names(os.environ)
    if not mistyped or "_BRAINQ_COMPLETE" in os.environ:
        return
    for name, meant in mistyped:
        note(f"brainq: {name} is not a setting; did you mean {meant}?", style="yellow")
    # Child processes must not repeat the warning.
    os.environ[WARNED_NAMES] = " ".join(name for name, _ in mistyped)


def describe_error(error: Exception) -> tuple[str, ExitCode]:
    """Return one sentence with a remedy, and the exit code, for an error of the disk or a service, or for a bug."""
    message = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}".rstrip(":. ")
    if isinstance(error, OSError) and error.errno in _FILE_ERRNOS:
        from brainq.app.wiring.preflight import disk_problem, disk_remedy

        return f"{error.filename or 'the disk'} {disk_problem(error)}; {disk_remedy(error)}", ExitCode.SETUP
    source = type(error).__module__.partition(".")[0]
    if source in _SERVICES:
        return _describe_service_error(error, source, message), ExitCode.SETUP
    return f"{message}; this is a bug in brainq, {TRACEBACK_VARIABLE}=1 shows where", ExitCode.BUG


def _describe_service_error(error: Exception, source: str, message: str) -> str:
    from brainq.adapters.redis.connection import redis_refusal
    from brainq.adapters.sql.refusals import driver_message, sql_refusal

    server = "Redis" if source in ("redis", "kombu") else "SQL"
    refusal = redis_refusal(error) if server == "Redis" else sql_refusal(error)
    if refusal is not None:
        return f"{server} {refusal.reason} ({driver_message(error)}); {refusal.remedy}"
    if source == "redis" and type(error).__name__ in _UNREACHABLE_ERRORS:
        return (
            f"the connection to Redis was lost ({message}); turns continue when it is restored; run `brainq "
            "doctor` to check it"
        )
    if type(getattr(error, "orig", error)).__module__ == "sqlite3":
        where = "the file that BRAINQ_SQL_URL or BRAINQ_DATA_DIR names, and the free space on its disk"
        return f"SQLite reports: {driver_message(error)}; check {where}"
    return f"{source} reports {message}; run `brainq doctor` to check it"


def _exit_with_message(message: str, code: ExitCode) -> None:
    note(f"brainq: {message}", style="red")
    sys.exit(code)


if __name__ == "__main__":
    main()
