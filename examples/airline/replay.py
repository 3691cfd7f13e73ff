"""`python -m examples.airline.replay`: recorded sessions of real models through real worker pools.

Every session must end on its recorded database, also while workers are killed. Exits 1 if one does not.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from brainq.app.devserver.local_fleet import POOLS
from examples.airline.aimock import CUT_EVERY, FAULTS, Aimock, add_fixtures, fixtures_of, why_not, wire_at
from examples.airline.playing import Report, replay, running_stage
from examples.airline.recorded import RecordedSession, load_sessions, recorded_path, save_sessions
from examples.airline.tasks import task_sessions
from examples.airline.wire import Wire, WireName

MOST_SHOWN = 20


def main(
    recorded: Annotated[Path | None, typer.Option(help="The recorded sessions, a .jsonl.gz file.")] = None,
    sessions: Annotated[int | None, typer.Option(help="Only the first N sessions.", min=1)] = None,
    in_flight: Annotated[int, typer.Option(help="Sessions played at once.", min=1)] = 64,
    kill_every_s: Annotated[
        float | None, typer.Option(help="Kill a worker of each pool every so many seconds.", min=0.5)
    ] = None,
    idempotent: Annotated[bool, typer.Option(help="Whether the write tools say they are idempotent.")] = True,
    wire: Annotated[WireName | None, typer.Option(help="Ask a model server (aimock) over this API, streamed.")] = None,
    model_url: Annotated[
        str | None, typer.Option(help="An aimock that runs already; without it one is started.")
    ] = None,
    faults: Annotated[
        bool, typer.Option(help="The model server limits, fails and hangs up, and cuts some replies off.")
    ] = False,
) -> None:
    """Replay recorded sessions and hold each to the database it ended on."""
    console = Console()
    path = recorded or recorded_path()
    if recorded is not None and not path.is_file():
        console.print(f"there are no recorded sessions at {path}; name the file with --recorded", style="red")
        raise typer.Exit(2)
    if problem := _wire_problem(wire, model_url, faults):
        console.print(problem, style="red", markup=False)
        raise typer.Exit(2)
    with (
        _sessions_file(path, console) as played,
        _wire(wire, model_url, faults, played) as spoken,
        running_stage(played, idempotent=idempotent, kills=kill_every_s is not None, wire=spoken) as stage,
        Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console
        ) as progress,
    ):
        chosen = load_sessions(played)[:sessions]
        bar = progress.add_task("turns", total=sum(len(session.turns) for session in chosen))

        def tell(session: RecordedSession) -> None:
            progress.advance(bar, len(session.turns))

        report = replay(stage, chosen, in_flight=in_flight, kill_every_s=kill_every_s, tell=tell)
    show(report, console)
    if not is_good(report, kill_every_s):
        raise typer.Exit(1)


@contextmanager
def _sessions_file(path: Path, console: Console) -> Generator[Path]:
    """The recorded sessions; where there are none, the tasks that the tools' own package carries."""
    if path.is_file():
        yield path
        return
    console.print(f"no recorded sessions at {path}: playing the 50 tasks of the airline's package instead")
    with tempfile.TemporaryDirectory(prefix="brainq-tasks-") as folder:
        tasks = Path(folder) / "tasks.jsonl.gz"
        save_sessions(tasks, [*task_sessions()])
        yield tasks


def _wire_problem(wire: WireName | None, model_url: str | None, faults: bool) -> str | None:
    if wire is None:
        return "--model-url and --faults need --wire openai or --wire anthropic" if model_url or faults else None
    if model_url is not None:
        return "--faults are those of a server that is started here: leave --model-url out" if faults else None
    return why_not()


@contextmanager
def _wire(wire: WireName | None, model_url: str | None, faults: bool, recorded: Path) -> Generator[Wire | None]:
    """The wire that is to be spoken, to a server that holds the recorded replies."""
    if wire is None:
        yield None
        return
    fixtures = fixtures_of(load_sessions(recorded), cut_every=CUT_EVERY if faults else 0)
    if model_url is not None:
        add_fixtures(model_url, fixtures)
        yield wire_at(model_url, wire)
        return
    with Aimock(fixtures, FAULTS if faults else ()) as server:
        yield server.wire(wire)


def is_good(report: Report, kill_every_s: float | None) -> bool:
    """Every session as recorded; and where workers were to be killed, one of every pool really was."""
    killed_all = kill_every_s is None or all(report.kills[pool] for pool in POOLS)
    return killed_all and not report.mismatched and not report.doubled


def show(report: Report, console: Console) -> None:
    """Print what a replay came to."""
    whole = sum(not checked.unknown and not checked.problems for checked in report.checked)
    unsure = sum(bool(checked.unknown) and not checked.problems for checked in report.checked)
    table = Table(show_header=False, box=None)
    table.add_row("sessions", f"{whole} as recorded, {len(report.mismatched)} not, {unsure} with unknown calls")
    table.add_row("turns", f"{report.turns} in {report.took_s:.1f} s: {report.turns / report.took_s:.1f} a second")
    for name, count in sorted(report.calls.items()):
        table.add_row("calls", f"{count} {name}")
    table.add_row("kills", ", ".join(f"{report.kills[pool]} {pool}" for pool in POOLS))
    table.add_row("rescued", f"{report.rescued} calls ran again, {report.repeats} writes were asked for twice")
    table.add_row("doubled", f"{report.doubled} writes")
    console.print(table)
    for checked in report.mismatched[:MOST_SHOWN]:
        console.print(f"{checked.session.session_id} ({checked.session.name})", style="red", highlight=False)
        for problem in checked.problems[:3]:
            console.print(f"  {problem}", highlight=False, markup=False)


if __name__ == "__main__":
    typer.run(main)
