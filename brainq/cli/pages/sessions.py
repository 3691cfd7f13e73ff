"""Lists of turns and sessions as tables, and the page that `brainq session` prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.text import Text

from brainq.cli.output import ago, clean, duration, short, status_text
from brainq.cli.pages.layout import PageTable, fact, key, print_head, print_section, words
from brainq.cli.pages.people import approval_section, hold_section
from brainq.cli.pages.turn_record import dollars
from brainq.client.client import Client
from brainq.contracts.history import ListedSession, ListedTurn, WaitingTurn
from brainq.contracts.people import Approval, StandingHold
from brainq.contracts.view import TurnSnapshot

NOTE_WIDTH = 72
MESSAGE_WIDTH = 48


def turns_table(rows: Sequence[ListedTurn]) -> PageTable:
    table = PageTable()
    now = datetime.now(UTC)
    for row in rows:
        took_ms = ((row.ended_at or now) - row.accepted_at).total_seconds() * 1000
        failed = row.failed_calls + row.dead_steps
        table.add(
            {
                key("turn"): row.turn_id,
                key("session"): clean(row.session_id, lines=False),
                key("state"): status_text(row.state),
                fact("accepted", 4): ago(row.accepted_at, now),
                fact("took", 2): Text(duration(max(0.0, took_ms))),
                fact("failed", 3, right=True): Text(str(failed) if failed else "", "red"),
                fact("unknown", 7, right=True): Text(str(row.unknown_calls or ""), "red bold"),
                fact("cost", 1, right=True): Text(dollars(row.cost_usd) if row.cost_usd else ""),
                words("message", 6): clean(short(row.message, MESSAGE_WIDTH), lines=False),
                words("note", 5): Text(short(row.note, NOTE_WIDTH), "dim"),
            }
        )
    return table


def sessions_table(rows: Sequence[ListedSession]) -> PageTable:
    table = PageTable()
    now = datetime.now(UTC)
    for row in rows:
        notes = [
            "paused" if row.is_paused else "",
            f"{row.flags} readiness flags" if row.flags else "",
            row.last_turn.message,
        ]
        table.add(
            {
                key("session"): clean(row.session_id, lines=False),
                fact("turns", 2, right=True): str(row.turns),
                fact("last turn", 3): ago(row.last_turn.accepted_at, now),
                key("state"): status_text(row.last_turn.state),
                fact("waiting", 1, right=True): Text(str(row.waiting) if row.waiting else ""),
                words("note", 4): Text(short("; ".join(part for part in notes if part), NOTE_WIDTH), "dim"),
            }
        )
    return table


@dataclass(frozen=True)
class SessionFacts:
    """The state of a session.

    live    the live turn, or None
    next    what happens next to the live turn
    flags   readiness flags that no turn has used yet
    """

    session_id: str
    live: TurnSnapshot | None
    next: str | None
    paused: bool
    why_paused: str
    waiting: Sequence[WaitingTurn]
    flags: Sequence[str]
    holds: Sequence[StandingHold]
    approvals: Sequence[Approval]
    known: bool

    def as_json(self) -> dict[str, Any]:
        return {
            "session_id": self.session_id,
            "live": self.live.turn_id if self.live else None,
            "state": self.live.state.value if self.live else None,
            "next": self.next,
            "paused": self.paused,
            "why_paused": self.why_paused,
            "waiting": [
                {"turn_id": turn.turn_id, "place": turn.place, "created_at": turn.created_at.isoformat()}
                for turn in self.waiting
            ],
            "flags": list(self.flags),
            "holds": [hold.model_dump(mode="json") for hold in self.holds],
            "approvals": [approval.model_dump(mode="json") for approval in self.approvals],
        }


def collect_session(client: Client, session_id: str) -> SessionFacts:
    """Read a session's state. Raises InvalidInput for a malformed id."""
    session = client.session(session_id)
    live, why_paused = session.live(), session.why_paused()
    running = client.handle(live) if live else None
    return SessionFacts(
        session_id=session_id,
        live=running.snapshot() if running else None,
        next=running.explain() if running else None,
        paused=why_paused is not None,
        why_paused=why_paused or "",
        waiting=session.waiting(),
        flags=session.unread_flags(),
        holds=running.holds() if running else (),
        approvals=client.approvals(session_id)[::-1],
        known=bool(session.history(1)),
    )


def print_session(console: Console, facts: SessionFacts) -> None:
    live = Text("none")
    if facts.live:
        live = Text(f"{facts.live.turn_id}  ").append_text(status_text(facts.live.state.value))
        live.append(f"  {facts.next}")
    paused = Text("no")
    if facts.paused:
        why = f" ({clean(facts.why_paused, lines=False)})" if facts.why_paused else ""
        paused = Text(f"yes{why}; no further turn starts; `brainq resume {facts.session_id}` resumes it", "yellow")
    head = [("session", Text(facts.session_id, "bold")), ("live", live), ("paused", paused)]
    if not facts.known:
        head.append(("note", Text("this session has no turns", "yellow")))
    print_head(console, head)
    if facts.waiting:
        waiting = PageTable(
            {
                fact("place", 2): str(turn.place),
                key("turn"): turn.turn_id,
                fact("accepted", 1): Text(ago(turn.created_at), "dim"),
            }
            for turn in facts.waiting
        )
        print_section(console, "waiting", waiting)
    if facts.flags:
        ready = f"brainq ready {facts.session_id} {facts.flags[0]}"
        print_section(
            console,
            "unused readiness flags, the next one first",
            *map(Text, facts.flags),
            Text("to release: ", "yellow").append(ready, "bold"),
        )
    if facts.holds and facts.live:
        print_section(console, "holds of the live turn", hold_section(facts.live.turn_id, facts.holds))
    if facts.approvals:
        print_section(console, "approvals", approval_section(facts.approvals))
