"""What is known of a session, and the page `brainq session` prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from brainq.cli.page import print_head, print_section
from brainq.cli.style import STATUS_STYLES, ago, clean, styled
from brainq.cli.table import PageTable, fact, key
from brainq.cli.turn_people import approval_section, hold_section
from brainq.client.client import Client
from brainq.client.session import WaitingTurn
from brainq.contracts.approval import Approval
from brainq.contracts.hold import StandingHold
from brainq.contracts.snapshot import TurnSnapshot


@dataclass(frozen=True)
class SessionFacts:
    """`live` is None when no turn runs, and `next` what happens next to it; `flags` are those that no turn has taken
    yet."""

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
    """Raises InvalidInput for what is not a session's id."""
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
        live = Text(f"{facts.live.turn_id}  ").append_text(styled(facts.live.state.value, STATUS_STYLES))
        live.append(f"  {facts.next}")
    paused = Text("no")
    if facts.paused:
        why = f" ({clean(facts.why_paused, lines=False)})" if facts.why_paused else ""
        paused = Text(
            f"yes{why}, no further turn begins; `brainq resume {facts.session_id}` ends it", "yellow"
        )
    head = [("session", Text(facts.session_id, "bold")), ("live", live), ("paused", paused)]
    if not facts.known:
        head.append(("note", Text("no turn of this session is known", "yellow")))
    print_head(console, head)
    if facts.waiting:
        table = PageTable(fact("place", 2), key("turn"), fact("accepted", 1))
        for turn in facts.waiting:
            table.add(str(turn.place), turn.turn_id, Text(ago(turn.created_at), "dim"))
        print_section(console, "waiting", table)
    if facts.flags:
        ready = f"brainq ready {facts.session_id} {facts.flags[0]}"
        print_section(
            console,
            "readiness flags that no turn has taken, the next one first",
            *map(Text, facts.flags),
            Text("to let it go: ", "yellow").append(ready, "bold"),
        )
    if facts.holds and facts.live:
        print_section(console, "holds of the live turn", hold_section(facts.live.turn_id, facts.holds))
    if facts.approvals:
        print_section(console, "people are asked", approval_section(facts.approvals))
