"""The page `brainq show` prints of one call."""

from __future__ import annotations

import json

from rich.console import Console
from rich.text import Text

from brainq.cli.page import print_head, print_section
from brainq.cli.style import EFFECT_STYLES, STATUS_STYLES, clean, duration, styled
from brainq.cli.turn_people import waits_for
from brainq.contracts.history import TurnCall


def print_call(console: Console, call: TurnCall) -> None:
    """How it stands, and all that it was given and gave back."""
    status = styled(call.status.value, STATUS_STYLES)
    if said := waits_for(call) or call.detail:
        status.append(f"  {clean(said, lines=False)}", "default")
    head = [
        ("call", Text(call.id, "bold")),
        ("session", Text(call.session_id)),
        ("tool", Text(call.tool)),
        ("effect", styled(call.effect.value, EFFECT_STYLES)),
        ("status", status),
        ("asked", Text(f"by step {call.step}, in wave {call.wave}, attempt {call.attempt}")),
    ]
    if call.status.is_settled and call.started_at_ms:
        head.append(("took", Text(duration(call.latency_ms))))
    print_head(console, head)
    if not call.is_kept:
        print_section(console, "arguments and result", Text("not kept", "dim"))
        return
    given = call.arguments
    shown = given if isinstance(given, str) else json.dumps(given, indent=2, ensure_ascii=False)
    print_section(console, "arguments", Text(clean(shown)))
    if call.result is not None:
        print_section(console, "result", Text(clean(call.result), "red" if call.is_error else ""))
