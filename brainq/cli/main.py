"""The `brainq` command: what it offers, and how errors leave it.

Each command is a file of its own, which imports only typer until the command runs: `brainq --help` stays quick.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

from brainq.cli import (
    approvals,
    brains,
    cancel,
    codes,
    db,
    dev,
    doctor,
    finalize,
    fleet,
    flower,
    init,
    listing,
    mcp,
    memory,
    metrics,
    outside,
    schedule,
    schema,
    serve,
    session,
    session_verbs,
    show,
    steer,
    submit,
    tail,
    token,
    up,
    webhook,
    worker,
)
from brainq.cli.codes import Exit
from brainq.cli.faults import said_of
from brainq.cli.help import HelpCommand, HelpGroup
from brainq.cli.options import App
from brainq.environment import read_env_file
from brainq.errors import BrainqError
from brainq.observe.raises import TRACEBACK

app = typer.Typer(
    name="brainq",
    cls=HelpGroup,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)

COMMANDS: dict[str, dict[str, Any]] = {
    "Begin": {"init": init.init, "dev": dev.dev, "doctor": doctor.doctor, "brains": brains.brains},
    "Turns": {
        "submit": submit.submit,
        "list": listing.list_turns,
        "show": show.show,
        "tail": tail.tail,
        "steer": steer.steer,
        "cancel": cancel.cancel,
        "schedule": schedule.app,
        "finalize": finalize.app,
    },
    "What people decide": {
        "approvals": approvals.approvals,
        "approve": approvals.approve,
        "deny": approvals.deny,
        "hold": steer.hold,
        "release": steer.release,
        "complete": outside.complete,
        "fail": outside.fail,
    },
    "Sessions": {
        "sessions": listing.list_sessions,
        "session": session.session,
        "history": session_verbs.history,
        "pause": session.pause,
        "resume": session.resume,
        "interrupt": session_verbs.interrupt,
        "drop": session_verbs.drop,
        "ready": session_verbs.ready,
        "compact": session_verbs.compact,
        "memory": memory.app,
    },
    "Run it": {
        "up": up.up,
        "worker": worker.worker,
        "serve": serve.serve,
        "db": db.app,
        "fleet": fleet.fleet,
        "metrics": metrics.metrics,
        "flower": flower.flower,
    },
    "Connect it": {"token": token.app, "mcp": mcp.app, "webhook": webhook.app, "schema": schema.schema},
}
for panel, commands in COMMANDS.items():
    for name, command in commands.items():
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, cls=HelpGroup, rich_help_panel=panel)
        else:
            app.command(name, cls=HelpCommand, rich_help_panel=panel)(command)


def _show_version(wanted: bool) -> None:
    if wanted:
        from brainq import __version__

        typer.echo(f"brainq {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True, epilog=codes.HELP)
def root(
    context: typer.Context,
    app: App = "",
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """LLM agent turns as distributed work on Celery and Redis.

    \b
    Try it, with two terminals in one directory:
      brainq init shop && cd shop                 a small project, without a key
      brainq dev                                  Redis, SQLite and all workers
      brainq submit s1 "count apples" --follow    in the other terminal
      brainq show 01k...                          what happened, what happens next

    `brainq COMMAND --help` has examples of each. `brainq --install-completion` lets the shell complete commands
    and turns.

    \b
    Settings come from the environment, and from .env in the working directory:
      BRAINQ_APP         module:variable of the brain, or of several (or -A)
      BRAINQ_REDIS_URL   unset: that of `brainq dev` in BRAINQ_DATA_DIR (.brainq)
      BRAINQ_SQL_URL     unset: SQLite in BRAINQ_DATA_DIR
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """The entry point: runs a command; an error is one line in red and an exit code, never a traceback."""
    try:
        read_env_file()
        _tell_mistyped()
        app()
    except BrainqError as error:
        _leave(str(error), codes.of_error(error))
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output went away, as `| head` does; Python must not complain at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(Exit.OK)
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        _leave(*said_of(error))


def _tell_mistyped() -> None:
    from brainq.environment import TOLD, mistyped

    found = mistyped(os.environ)
    if not found or "_BRAINQ_COMPLETE" in os.environ:
        return
    from brainq.cli.output import say

    for name, meant in found:
        say(f"brainq: {name} is not a setting; did you mean {meant}?", style="yellow")
    # The processes that this one starts need not say it again.
    os.environ[TOLD] = " ".join(name for name, _ in found)


def _leave(message: str, code: Exit) -> None:
    from brainq.cli.output import say

    say(f"brainq: {message}", style="red")
    sys.exit(code)


if __name__ == "__main__":
    main()
