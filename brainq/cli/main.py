"""The `brainq` command: what it offers, and how errors leave it.

Each command is a file of its own, which imports only typer until the command runs: `brainq --help` stays quick.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from brainq.cli import (
    approvals,
    cancel,
    codes,
    db,
    dev,
    doctor,
    finalize,
    flower,
    listing,
    session,
    show,
    steer,
    submit,
    tail,
    up,
    worker,
)
from brainq.cli.codes import Exit
from brainq.cli.options import App
from brainq.errors import BrainqError

TRACEBACK = "BRAINQ_TRACEBACK"

app = typer.Typer(
    name="brainq",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)

for name, command in {
    "dev": dev.dev,
    "submit": submit.submit,
    "tail": tail.tail,
    "list": listing.list_turns,
    "show": show.show,
    "cancel": cancel.cancel,
    "steer": steer.steer,
    "hold": steer.hold,
    "release": steer.release,
    "approvals": approvals.approvals,
    "approve": approvals.approve,
    "deny": approvals.deny,
    "session": session.session,
    "pause": session.pause,
    "resume": session.resume,
    "doctor": doctor.doctor,
    "up": up.up,
    "worker": worker.worker,
    "flower": flower.flower,
}.items():
    app.command(name, epilog=codes.HELP if name == "submit" else None)(command)
app.add_typer(db.app, name="db")
app.add_typer(finalize.app, name="finalize")


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
      brainq dev -A shop.agent:brain                    Redis, SQLite and all workers
      brainq -A shop.agent:brain submit s1 "Hello!" --follow
    \b
    Then look at it:
      brainq list                                       the newest turns
      brainq show 01k...                                one turn: what happened, what happens next
      brainq tail 01k...                                its events, live
      brainq doctor                                     what is wrong with this setup
    \b
    Talk to what runs:
      brainq steer 01k... "Use the blue one"            input for its next step
      brainq approvals                                  calls that wait for a person
      brainq hold 01k...                                keep it from changing anything
      brainq session s1                                 what is live, and what waits
    \b
    Settings come from the environment:
      BRAINQ_APP         module:variable of the brain (or -A)
      BRAINQ_REDIS_URL   unset: the Redis that `brainq dev` runs in BRAINQ_DATA_DIR (.brainq)
      BRAINQ_SQL_URL     unset: SQLite in BRAINQ_DATA_DIR
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """The entry point: runs a command; an error is one line in red and an exit code, never a traceback."""
    try:
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
        _leave(*_foreign(error))


def _foreign(error: Exception) -> tuple[str, Exit]:
    """What to say of an error that is not brainq's own: a service that went away, or a bug."""
    said = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    source = type(error).__module__.partition(".")[0]
    if source in ("redis", "kombu", "sqlalchemy", "psycopg", "sqlite3"):
        return f"{source} reports {said}; is it running? `brainq doctor` looks", Exit.SETUP
    return f"{said}; this is a bug in brainq, {TRACEBACK}=1 shows where", Exit.BUG


def _leave(message: str, code: Exit) -> None:
    from brainq.cli.output import say

    say(f"brainq: {message}", style="red")
    sys.exit(code)


if __name__ == "__main__":
    main()
