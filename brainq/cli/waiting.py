"""Wait for a turn at the terminal: print its events, return its result, and explain delays."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from brainq.cli.output import note, print_json, stdout
from brainq.contracts.status import TurnState
from brainq.errors import BrainqError, ResultTimeout, Unreachable

if TYPE_CHECKING:
    from brainq.client.client import Client
    from brainq.client.handle import TurnHandle
    from brainq.contracts.event import TurnEvent
    from brainq.contracts.turn import TurnResult

POLL_S = 2.0
LONG, LONG_S = "long", 10.0
PATIENCE_S, AGAIN_S = 60.0, 0.5
"""How long a command waits for Redis or SQL after it stopped answering, and the pause between two tries."""
WAITING_STATES = (TurnState.QUEUED, TurnState.PARKED)


@dataclass(frozen=True)
class FollowResult:
    """The result of following a turn.

    final   True if the turn's last event was printed
    text    the model's newest text
    """

    final: bool
    text: str


def follow_events(
    handle: TurnHandle, *, after: int = 0, as_json: bool = False, timeout_s: float | None = None
) -> FollowResult:
    """Print events as they arrive. Raises ResultTimeout if the final event does not arrive within `timeout_s`."""
    from brainq.cli.pages.events import EventPrinter

    printer = EventPrinter(stdout())
    if after:
        snapshot = handle.snapshot()
        for entry in snapshot.trace if snapshot else ():
            printer.add_known_call(entry.call_id, entry.tool, entry.effect)
    final = False
    try:
        for event in _events_through_outages(handle, after, timeout_s):
            if as_json:
                print_json(event)
            else:
                printer.show(event)
            final = event.is_final
    finally:
        if not as_json:
            printer.close()
    return FollowResult(final, printer.text)


class _Patience:
    """A limit on how long a command waits for Redis or SQL to answer again. The turn continues meanwhile."""

    def __init__(self) -> None:
        self._away_since: float | None = None

    def wait(self, away: Unreachable) -> None:
        """Wait before the next try. Raises `away` if the service has not answered for PATIENCE_S."""
        now = time.monotonic()
        if self._away_since is None:
            self._away_since = now
            note(f"{away}; the turn continues, and this command waits until the service answers again", style="yellow")
        elif now - self._away_since > PATIENCE_S:
            raise away
        time.sleep(AGAIN_S)

    def end(self) -> None:
        """Print that the service answers again, if it had stopped."""
        if self._away_since is not None:
            note("connected again", style="dim")
            self._away_since = None


def _events_through_outages(handle: TurnHandle, after: int, timeout_s: float | None) -> Iterator[TurnEvent]:
    """Yield each event of a turn once, across outages of Redis. Raises ResultTimeout and Unreachable."""
    until = None if timeout_s is None else time.monotonic() + timeout_s
    patience = _Patience()
    while True:
        try:
            for event in handle.events(after, None if until is None else max(0.0, until - time.monotonic())):
                patience.end()
                after = event.seq
                yield event
            return
        except Unreachable as away:
            patience.wait(away)


def wait_for_result(handle: TurnHandle, timeout_s: float | None) -> TurnResult:
    """Return the result. While waiting, print once why the turn is queued or parked. If it takes long, print once that
    a worker may be missing. Raises ResultTimeout.
    """
    began_at = time.monotonic()
    until = None if timeout_s is None else began_at + timeout_s
    noted, patience = "", _Patience()
    while True:
        left = POLL_S if until is None else until - time.monotonic()
        try:
            return handle.result(max(0.0, min(POLL_S, left)))
        except ResultTimeout:
            if left <= 0:
                raise ResultTimeout(
                    f"turn {handle.turn_id!r} has no result after {timeout_s:g} s; it continues, so try again later"
                ) from None
        except Unreachable as away:
            patience.wait(away)
            continue
        patience.end()
        with suppress(Unreachable):  # the next try reports it
            noted = _note_wait(handle, noted, time.monotonic() - began_at)


def _note_wait(handle: TurnHandle, noted: str, waited_s: float) -> str:
    """Print what the turn waits for, unless that equals `noted`. Returns a key for what it waits for."""
    snapshot = handle.snapshot()
    waits = LONG if waited_s > LONG_S else ""
    if snapshot and snapshot.state in WAITING_STATES:
        waits = f"{snapshot.state.value} {snapshot.awaits.value}"
    if waits and waits != noted:
        parked = "parked: " if snapshot and snapshot.state is TurnState.PARKED else ""
        note(f"{parked}{handle.explain()}; `brainq show {handle.turn_id}` has details", style="yellow")
    return waits


def note_older_workers(client: Client, session: str) -> None:
    """Print a note if the workers run another version of a brain than the code in this directory."""
    from brainq.client.connection import cells_of
    from brainq.contracts.build import brains_behind

    wiring = cells_of(client).of_session(session)
    with suppress(BrainqError):  # The turn is accepted, so an error here must not look as if the submit had failed.
        if behind := brains_behind(wiring.build, wiring.state.builds.workers()):
            note(
                f"the workers run a different version of brain {', '.join(behind)} than the code in this directory; "
                "restart them, or use `brainq dev --reload`",
                style="yellow",
            )
