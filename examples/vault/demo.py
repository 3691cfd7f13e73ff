"""The demo: real workers, a Redis of its own and a copy of the notes; six turns in three sessions, side by side.

The worker of a seventh is killed in the middle of a write.

    python -m examples.vault.demo          from the root of the repository; `make demo` does the same
    python -m examples.vault.demo --keep   leaves the folder with notes, database and logs
    python -m examples.vault.demo --picture docs/images/demo.svg    also draws that last turn, as the README shows it

Needs no key and no Redis on the machine. Exits with 0, or with 1 and the ends of the workers' logs.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import time
from queue import SimpleQueue
from threading import Thread
from typing import NoReturn

from rich.console import Console
from rich.text import Text

from brainq import Client, Ending, EventKind, TurnEvent, TurnHandle
from brainq.app.devserver.local_fleet import LocalFleet
from brainq.cli.pages.events import EventPrinter
from brainq.client.connection import wiring_of
from examples.vault.app import PROMPT_ID
from examples.vault.kept import show_kept, wait_for_judges
from examples.vault.killing import kill_in_a_write
from examples.vault.model import choose_model, described
from examples.vault.report import (
    Finished,
    draw,
    heading,
    read_folder,
    show_answers,
    show_changes,
    show_next,
    show_pools,
)
from examples.vault.stage import Stage, set_up, temporary_folder

WIDTH_OF_A_PIPE = 100
QUIET_S = 90.0  # a turn without an event for this long has failed; a real model may think for a while
END_S = 20.0
# The answers come below, whole; and a call that was dispatched is running a moment later.
UNSHOWN = frozenset({EventKind.TEXT_DELTA, EventKind.CALL_DISPATCHED})


def messages(page_url: str) -> list[tuple[str, str]]:
    """(session, message). Turns of one session wait for each other, sessions do not."""
    return [
        ("desk", "What are my open loops about the checkout rewrite?"),
        ("reading", f"Fetch {page_url} and keep it as a note."),
        ("tidy", "Delete the note inbox/standup-scratch"),
        ("desk", "Note down that the checkout rewrite needs one name on call in its first week."),
        ("reading", "I prefer short answers. What do I know about retries and keys?"),
        ("tidy", "What are my open loops about the meetup?"),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m examples.vault.demo", description="Six turns on a folder of notes."
    )
    parser.add_argument("--keep", action="store_true", help="leave the folder with notes, database and logs")
    parser.add_argument("--picture", metavar="FILE.svg", help="draw the turn whose worker is killed into a file")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, _stop)
    console = _console(record=bool(given.picture))
    with temporary_folder(keep=given.keep) as folder, set_up(folder) as stage:
        try:
            trouble = _play(console, stage, given.picture)
        except Exception as error:
            trouble = f"{type(error).__name__}: {error}"
        if trouble:
            _show_logs(console, stage.fleet)
            console.print(Text(f"\nThe demo failed: {trouble}", style="bold red"), soft_wrap=True)
        if given.keep:
            console.print(f"\nKept: {folder}", soft_wrap=True)
    return 1 if trouble else 0


def _play(console: Console, stage: Stage, picture: str | None) -> str:
    """Run it and show it; what went wrong, or nothing. `picture`: where to draw its last turn."""
    before = read_folder(stage.notes)
    console.print(Text.assemble(("brainq demo", "bold"), "  an agent on a folder of notes"))
    console.print(f"  model    {described(choose_model(os.environ))}", highlight=False)
    console.print(f"  notes    {len(before)} Markdown files, a copy in a temporary folder", highlight=False)
    console.print("  workers  starting", end="", highlight=False)
    begun = time.monotonic()
    stage.fleet.start()
    names = ", ".join(worker.name for worker in stage.fleet.workers)
    took_s = time.monotonic() - begun
    console.print(f": {names} (four processes, an embedded Redis, SQLite; up in {took_s:.1f} s)", highlight=False)
    with Client() as client:
        asked = messages(stage.page_url)
        labels = _labels([session for session, _ in asked])
        heading(console, "Six turns in three sessions; the second of each waits for the first")
        for label, (_, message) in zip(labels, asked, strict=True):
            console.print(
                Text.assemble((f"  {label:<{max(map(len, labels))}}", "bold"), f"  {message}"), soft_wrap=True
            )
        heading(console, "As they run")
        handles = [client.submit(session, message, prompt_id=PROMPT_ID) for session, message in asked]
        _follow(console, handles, labels)
        turns = [
            _finished(client, handle, label, message)
            for handle, label, (_, message) in zip(handles, labels, asked, strict=True)
        ]
        wait_for_judges(wiring_of(client).store, turns, END_S)
        heading(console, "Answers")
        show_answers(console, turns)
        heading(console, "Which pool ran what")
        show_pools(console, turns, _pools(stage.fleet))
        heading(console, "What was kept in SQL")
        show_kept(console, wiring_of(client).store, turns)
    heading(console, "What changed in the folder")
    show_changes(console, before, read_folder(stage.notes))
    bad = [turn.label for turn in turns if turn.result.ending is not Ending.COMPLETED]
    if bad:
        return f"not completed: {', '.join(bad)}"
    trouble = _show_a_kill(console, stage, picture)
    if trouble:
        return trouble
    heading(console, "What to try next")
    show_next(console)
    return ""


def _show_a_kill(console: Console, stage: Stage, picture: str | None) -> str:
    """A worker's death in the middle of a write; what went wrong, or nothing."""
    if picture:
        console.export_text(clear=True)  # the picture shows this part alone
    heading(console, "A worker is killed in the middle of a write")
    with Client() as client:
        trouble = kill_in_a_write(console, client, stage)
    if picture:
        draw(console, picture)
    return trouble


def _follow(console: Console, handles: list[TurnHandle], labels: list[str]) -> None:
    """Print all turns' events on one console, in the order they come, until every turn has its result."""
    inbox: SimpleQueue[tuple[int, TurnEvent | Exception | None]] = SimpleQueue()

    def read(index: int) -> None:
        try:
            for event in handles[index].events(idle_s=QUIET_S):
                inbox.put((index, event))
            inbox.put((index, None))
        except Exception as error:
            inbox.put((index, error))

    width = max(map(len, labels))
    timelines = [EventPrinter(console, label.ljust(width)) for label in labels]
    for index in range(len(handles)):
        Thread(target=read, args=(index,), name=f"demo-{labels[index]}", daemon=True).start()
    following = len(handles)
    while following:
        index, item = inbox.get()
        if isinstance(item, TurnEvent):
            if item.kind not in UNSHOWN:
                timelines[index].show(item)
            continue
        timelines[index].close()
        following -= 1
        if item is not None:
            raise item


def _finished(client: Client, handle: TurnHandle, label: str, asked: str) -> Finished:
    """The turn once its finalizer is through: the result is out before that."""
    result = handle.result(timeout_s=END_S)
    until = time.monotonic() + END_S
    while True:
        snapshot = handle.snapshot()
        if snapshot is None:
            raise RuntimeError(f"turn {handle.turn_id} is gone from Redis")
        if snapshot.state.is_final:
            break
        if time.monotonic() > until:
            raise RuntimeError(
                f"turn {handle.turn_id} has its result, but its finalizer stands at {snapshot.finalizer_step}"
            )
        time.sleep(0.05)
    steps = sum(row.state == "done" for row in wiring_of(client).store.steps.of_turn(handle.turn_id))
    return Finished(label, asked, result, snapshot.trace, steps)


def _labels(sessions: list[str]) -> list[str]:
    """`desk 1`, `desk 2`: a session's turns, counted."""
    return [f"{session} {sessions[: index + 1].count(session)}" for index, session in enumerate(sessions)]


def _pools(fleet: LocalFleet) -> dict[str, str]:
    """The owner's name that a worker signs with -> its pool."""
    host = socket.gethostname()
    return {f"{host}-{worker.process.pid}": worker.pool for worker in fleet.workers if worker.process is not None}


def _show_logs(console: Console, fleet: LocalFleet) -> None:
    for worker in fleet.workers:
        tail = worker.log_tail()
        if tail:
            console.print(Text(f"\n{worker.log_path}, its end:", style="bold"), soft_wrap=True)
            console.print(Text(tail), soft_wrap=True)


def _console(*, record: bool) -> Console:
    width = None if sys.stdout.isatty() and not record else WIDTH_OF_A_PIPE
    return Console(width=width, record=record)


def _stop(signum: int, frame: object) -> NoReturn:
    """SIGTERM unwinds like Ctrl+C, so that nothing is left running."""
    raise SystemExit(128 + signum)


if __name__ == "__main__":
    sys.exit(main())
