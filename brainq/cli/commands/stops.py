"""`brainq stop`, `lift`, `stops` and `audit`: operators pause or forbid by name, and see who did what."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, cast

import typer

from brainq.cli.connect import open_brainless_client, open_operator
from brainq.cli.options import AsJson, Limit
from brainq.cli.output import clean, duration, note, print_outcome, print_rows
from brainq.errors import BrainqError, ExitCode

if TYPE_CHECKING:
    from brainq.cli.pages.layout import PageTable
    from brainq.contracts.act import Act
    from brainq.contracts.stop import Stop, StopKind

Kind = Annotated[str, typer.Argument(metavar="KIND", help="brain, tool, model, server (of MCP) or tenant.")]
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Its name; of a model `provider:model`, or the model's name alone.")
]
Tenant = Annotated[str, typer.Option("--tenant", help="Only of this tenant's turns.")]


def stop(
    kind: Kind,
    name: Name,
    because: Annotated[str, typer.Option("--because", help="Why; shown to everybody whom it meets.")] = "",
    forbid: Annotated[bool, typer.Option("--forbid", help="Refuse what meets it: nothing waits.")] = False,
    tenant: Tenant = "",
    for_s: Annotated[float | None, typer.Option("--for-s", help="After so long it is lifted by itself.")] = None,
    by: Annotated[str, typer.Option("--by", help="Who stops it; the user of this shell.")] = "",
    as_json: AsJson = False,
) -> None:
    """Pause or forbid a tool, model or tenant by name.

    A brain or an MCP server, too; for every worker at once. What meets it waits: calls before they begin, turns before
    their next step, new turns too. Their time does not run, and `brainq lift` lets them go on. With --forbid it is
    refused: a call is denied and the model reads why, a submit fails, and a live turn of the brain or tenant is
    cancelled at its next step. What has begun already goes on.

    \b
    Examples:
      brainq stop tool send_email --because "it writes to the wrong list"
      brainq stop model openai:gpt-5 --because "wrong prices" --for-s 3600
      brainq stop server github --forbid --because "its token leaked"
      brainq stop tenant acme --forbid --because "unpaid"
      brainq stop tool refund --tenant acme
    """
    with open_brainless_client() as client:
        made = client.stop(
            cast("StopKind", kind),
            name,
            mode="forbid" if forbid else "pause",
            reason=because,
            by=by or shell_user(),
            tenant=tenant,
            ends_in_s=for_s,
        )
        is_unheard_of = made.kind == "tenant" and not client.turns(limit=1, session_prefixes=(made.name,))
    print_outcome(made, f"{made.describe()}; {made.remedy} lifts it", as_json=as_json)
    if is_unheard_of:
        note(
            f"no turn of tenant {name.removesuffix(':')} is known yet; `brainq list` has the sessions there are",
            "yellow",
        )
    elif unmet := unmet_note(made):
        note(unmet, "yellow")


def unmet_note(made: Stop) -> str:
    """Where the brains that are here have nothing of the name: a misspelt one stops nothing. "" where none are here."""
    from brainq.brain.brains import load_brains
    from brainq.settings.deployment import load_settings

    try:
        brains = tuple(load_brains(load_settings().app))
    except BrainqError:
        return ""
    known = {
        "brain": [brain.name for brain in brains],
        "tool": [name for brain in brains for name in brain.tools.specs],
        "server": [server.name for brain in brains for server in brain.mcp],
    }.get(made.kind)
    if known is None or made.name in known:
        return ""
    near = get_close_matches(made.name, known, 1)
    meant = f"; did you mean {near[0]}?" if near else "."
    return f"the brains here (BRAINQ_APP) have no {made.kind} {made.name}{meant} The stop stands until it is lifted"


def lift(kind: Kind, name: Name, tenant: Tenant = "", as_json: AsJson = False) -> None:
    """Lift a stop: what waited for it goes on.

    \b
    Examples:
      brainq lift tool send_email
      brainq lift tool refund --tenant acme
    """
    with open_brainless_client() as client:
        lifted = client.lift(cast("StopKind", kind), name, tenant=tenant)
    text = f"{kind} {name} goes on" if lifted else f"{kind} {name} is not stopped; `brainq stops` lists what is"
    value = {"kind": kind, "name": name, "tenant": tenant, "lifted": lifted}
    print_outcome(value, text, ok=lifted, exit_code=ExitCode.NOT_FOUND, as_json=as_json)


def stops(as_json: AsJson = False) -> None:
    """List what operators have stopped.

    Who did it, why, since when, and until when. Works while Redis is away, too.

    \b
    Examples:
      brainq stops
      brainq stops --json
    """
    with open_operator() as operator:
        rows = operator.stops()
    print_rows(rows, stops_table, "nothing is stopped", as_json=as_json)


def stops_table(rows: Sequence[Stop]) -> PageTable:
    from rich.text import Text

    from brainq.cli.output import ago
    from brainq.cli.pages.layout import PageTable, fact, key, words

    return PageTable(
        {
            key("stopped"): clean(row.subject, lines=False),
            fact("mode", 6): Text(row.mode, "red" if row.mode == "forbid" else "yellow"),
            fact("by", 4): clean(row.by, lines=False),
            fact("since", 3): "" if row.since is None else ago(row.since),
            fact("ends in", 2): "" if row.ends_in_s is None else duration(row.ends_in_s * 1000),
            words("because", 1): clean(row.reason, lines=False),
        }
        for row in rows
    )


def audit(
    who: Annotated[str | None, typer.Option("--who", help="Only of this token, person or user.")] = None,
    act: Annotated[str | None, typer.Option("--act", help="Only these, such as approve, cancel, stop.")] = None,
    turn: Annotated[str | None, typer.Option("--turn", metavar="TURN", help="Only of this turn.")] = None,
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List what people and tokens did.

    Who, when, from where (http, cli, client), and to what: approvals, cancels, holds, pauses, stops, schedules, tokens,
    memories that were forgotten, steps that were retried. The newest come first; `brainq db prune` forgets old ones.

    \b
    Examples:
      brainq audit
      brainq audit --who ann --act approve
      brainq audit --turn 01k7x2 --json
    """
    with open_brainless_client() as client:
        whole = None if turn is None else client.find(turn).turn_id
        rows = client.audit(limit, who=who, act=act, turn=whole)
    print_rows(rows, _acts_table, "nothing was done", as_json=as_json)


def _acts_table(rows: Sequence[Act]) -> PageTable:
    from brainq.cli.output import ago
    from brainq.cli.pages.layout import PageTable, fact, key, words

    return PageTable(
        {
            key("act"): row.act,
            fact("who", 6): clean(row.who, lines=False),
            fact("from", 3): row.source,
            fact("when", 5): ago(row.at),
            fact("turn", 4): row.turn_id or row.session_id,
            words("what", 1): clean(row.subject, lines=False),
            words("because", 2): clean(row.reason, lines=False),
        }
        for row in rows
    )


def shell_user() -> str:
    """Who types, for the record; "" where the system does not say."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""
