"""The demo's last part: the serial pool's worker gets SIGKILL in the middle of a write, and the turn goes on."""

from __future__ import annotations

import textwrap
from queue import Empty, SimpleQueue
from threading import Thread
from typing import cast

from rich.console import Console
from rich.text import Text

from brainq import Client, Ending, EventKind, TurnEvent, TurnHandle
from brainq.app.devserver.local_fleet import LocalFleet
from brainq.cli.output import clean, counted
from brainq.cli.pages.events import EventPrinter
from examples.vault.stage import Inbox, Stage

SESSION = "mail"
NOTE = "projects/checkout-rewrite"
QUIET_S = 90.0  # a turn without an event for this long has failed; a real model may think for a while
RESULT_S = 20.0
MARGIN = 10
SHOWN = frozenset(
    {
        EventKind.TURN_ACTIVE,
        EventKind.STEP_STARTED,
        EventKind.STEP_ENDED,
        EventKind.CALL_RUNNING,
        EventKind.CALL_ENDED,
        EventKind.RESULT,
    }
)


def kill_in_a_write(console: Console, client: Client, stage: Stage) -> str:
    """Submit a turn that sends a note, kill its worker once the note has arrived, and show what became of it.

    What went wrong, or nothing. A model that does not send the note is told of, and nothing is killed.
    """
    message = f"Send the note {NOTE} to {stage.inbox.url}"
    console.print(Text.assemble(("  asked   ", "dim"), message), soft_wrap=True)
    handle = client.submit(SESSION, message)
    arrived = _follow(console, handle, stage)
    result = handle.result(timeout_s=RESULT_S)
    if result.ending is not Ending.COMPLETED:
        return f"the turn whose worker was killed: {result.ending.value} ({result.stop_reason.value})"
    if not arrived:
        console.print(Text("  The model sent nothing, so nothing was killed.", style="yellow"))
        return ""
    snapshot = handle.snapshot()
    calls = [call for call in (snapshot.trace if snapshot else ()) if call.tool == "send_note"]
    told = ", ".join(f"{call.call_id} is {call.status.value}" for call in calls)
    console.print(Text.assemble(("  ledger  ", "dim"), f"{told}: it had begun, and was not run again"))
    console.print(Text.assemble(("  inbox   ", "dim"), f"received {counted(arrived + _more(stage.inbox), 'time')}"))
    lines = textwrap.wrap(clean(result.text, lines=False), console.width - MARGIN)
    for label, line in zip(("answer", *[""] * len(lines)), lines, strict=False):
        console.print(Text.assemble((f"  {label:<{MARGIN - 2}}", "dim"), line))
    return ""


def _follow(console: Console, handle: TurnHandle, stage: Stage) -> int:
    """Show the turn until it ends, and kill its worker when the note arrives; how many notes had arrived by then."""
    inbox: SimpleQueue[TurnEvent | str | Exception | None] = SimpleQueue()
    Thread(target=_read, args=(handle, inbox), name="demo-kill-events", daemon=True).start()
    Thread(target=lambda: inbox.put(stage.inbox.received.get()), name="demo-kill-arrival", daemon=True).start()
    timeline = EventPrinter(console)
    opening: set[object] = set()  # calls before the first step, which ask no worker
    arrived = 0
    while (item := inbox.get()) is not None:
        if isinstance(item, Exception):
            raise item
        if isinstance(item, str):
            arrived += 1
            _kill(console, stage.fleet)
            stage.inbox.answers.set()
        elif item.kind is EventKind.TURN_OPENING:
            opening |= {call["call"] for call in cast("list[dict[str, object]]", item.data["plan"])}
        elif item.kind in SHOWN and item.data.get("call", "") not in opening:
            timeline.show(item)
    timeline.close()
    return arrived


def _read(handle: TurnHandle, inbox: SimpleQueue[TurnEvent | str | Exception | None]) -> None:
    try:
        for event in handle.events(idle_s=QUIET_S):
            inbox.put(event)
        inbox.put(None)
    except Exception as error:
        inbox.put(error)


def _kill(console: Console, fleet: LocalFleet) -> None:
    """SIGKILL to the serial worker, and another one started, as a supervisor does it."""
    (worker,) = fleet.of_pool("serial")
    assert worker.process is not None
    killed = worker.process.pid
    fleet.kill(worker)
    worker.launch()
    line = f"the note has arrived; kill -9 {killed}, the serial worker, before the answer"
    console.print(Text.assemble(("  KILLED  ", "bold red"), line), soft_wrap=True)
    fleet.wait_ready()
    console.print(Text.assemble(("  STARTED ", "bold green"), f"serial worker {worker.process.pid}"))


def _more(inbox: Inbox) -> int:
    """How many more notes have arrived since the first."""
    count = 0
    while True:
        try:
            inbox.received.get_nowait()
        except Empty:
            return count
        count += 1
