"""Waiting for a turn at the terminal: its events as they come, its result, and what keeps it waiting."""

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
"""How long a command waits for Redis or SQL that went away, and how often it looks."""
WAITING_STATES = (TurnState.QUEUED, TurnState.PARKED)


@dataclass(frozen=True)
class FollowResult:
    """What following a turn showed. `final`: its last event was seen. `text`: the model's newest text."""

    final: bool
    text: str


def follow_events(
    handle: TurnHandle, *, after: int = 0, as_json: bool = False, timeout_s: float | None = None
) -> FollowResult:
    """Print events as they come. Raises ResultTimeout when `timeout_s` is up before the final one."""
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
    """How long a command waits for Redis or SQL while a turn goes on without it."""

    def __init__(self) -> None:
        self._away_since: float | None = None

    def wait(self, away: Unreachable) -> None:
        """Wait a moment. Raises `away` if the service has not answered for PATIENCE_S."""
        now = time.monotonic()
        if self._away_since is None:
            self._away_since = now
            note(f"{away}; the turn goes on, and this waits for it", style="yellow")
        elif now - self._away_since > PATIENCE_S:
            raise away
        time.sleep(AGAIN_S)

    def end(self) -> None:
        """Say that the service has answered."""
        if self._away_since is not None:
            note("it answers again", style="dim")
            self._away_since = None


def _events_through_outages(handle: TurnHandle, after: int, timeout_s: float | None) -> Iterator[TurnEvent]:
    """Yield a turn's events, each once, also if Redis goes away meanwhile. Raises ResultTimeout, Unreachable."""
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
    """Return the result. Meanwhile note, once each, why the turn is queued or parked, and that it takes long: a worker
    may be missing. Raises ResultTimeout."""
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
                    f"turn {handle.turn_id!r} has no result after {timeout_s:g} s; it goes on, ask again later"
                ) from None
        except Unreachable as away:
            patience.wait(away)
            continue
        patience.end()
        with suppress(Unreachable):  # it has just answered: the next look finds out
            noted = _note_wait(handle, noted, time.monotonic() - began_at)


def _note_wait(handle: TurnHandle, noted: str, waited_s: float) -> str:
    """Note what the turn waits for, if that is not what was `noted`. Returns a word for it."""
    snapshot = handle.snapshot()
    waits = LONG if waited_s > LONG_S else ""
    if snapshot and snapshot.state in WAITING_STATES:
        waits = f"{snapshot.state.value} {snapshot.awaits.value}"
    if waits and waits != noted:
        parked = "parked: " if snapshot and snapshot.state is TurnState.PARKED else ""
        note(f"{parked}{handle.explain()}; `brainq show {handle.turn_id}` says how it goes on", style="yellow")
    return waits


def note_older_workers(client: Client, session: str) -> None:
    """Note it if the workers run another version of a brain than the one in the code that is here."""
    from brainq.client.connection import cells_of
    from brainq.contracts.build import brains_behind

    wiring = cells_of(client).of_session(session)
    with suppress(BrainqError):  # the turn is accepted: that is what counts
        if behind := brains_behind(wiring.build, wiring.state.builds.workers()):
            note(
                f"the workers run another version of brain {', '.join(behind)} than the code here: restart them, or "
                "use `brainq dev --reload`",
                style="yellow",
            )
