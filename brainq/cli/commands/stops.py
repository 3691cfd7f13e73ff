"""`brainq stop`, `lift`, `stops` and `audit`: pause or forbid a part of the fleet by name, and see who did what."""

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

Kind = Annotated[
    str, typer.Argument(metavar="KIND", help="What to stop: brain, tool, model, server (an MCP server) or tenant.")
]
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Its name. For a model, provider:model or only the model's name.")
]
Tenant = Annotated[str, typer.Option("--tenant", help="Only for turns of this tenant.")]


def stop(
    kind: Kind,
    name: Name,
    because: Annotated[str, typer.Option("--because", help="The reason, shown wherever the stop takes effect.")] = "",
    forbid: Annotated[bool, typer.Option("--forbid", help="Refuse calls and turns instead of pausing them.")] = False,
    tenant: Tenant = "",
    for_s: Annotated[float | None, typer.Option("--for-s", help="Lift the stop after this many seconds.")] = None,
    by: Annotated[
        str, typer.Option("--by", help="Your name, recorded with the stop. By default your login name.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Pause or forbid a tool, model or tenant by name.

    You can also stop a brain or an MCP server. The stop applies to every worker at once. Calls wait before they start,
    and turns wait before their next step. Their deadlines are extended, and `brainq lift` resumes them. With --forbid,
    calls are denied (the model reads why), submits fail, and a live turn of a forbidden brain or tenant is cancelled at
    its next step. A call or step that has already started continues.

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
    print_outcome(made, f"{made.describe()}; to undo: {made.remedy}", as_json=as_json)
    if is_unheard_of:
        note(
            f"tenant {name.removesuffix(':')} has no turns yet; `brainq sessions` lists the known sessions",
            "yellow",
        )
    elif unmet := unmet_note(made):
        note(unmet, "yellow")


def unmet_note(made: Stop) -> str:
    """Return a warning if no brain of BRAINQ_APP has anything of that name, because a misspelt name stops nothing.

    Returns "" if the name is known, or if no brain can be loaded here.
    """
    from brainq.engine.brain.brains import load_brains
    from brainq.runtime.settings.deployment import load_settings

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
    return f"the brains of BRAINQ_APP have no {made.kind} {made.name}{meant} The stop remains active until it is lifted"


def lift(kind: Kind, name: Name, tenant: Tenant = "", as_json: AsJson = False) -> None:
    """Lift a stop: paused calls and turns resume.

    \b
    Examples:
      brainq lift tool send_email
      brainq lift tool refund --tenant acme
    """
    with open_brainless_client() as client:
        lifted = client.lift(cast("StopKind", kind), name, tenant=tenant)
    text = f"{kind} {name} is no longer stopped"
    text = text if lifted else f"{kind} {name} is not stopped; `brainq stops` lists all stops"
    value = {"kind": kind, "name": name, "tenant": tenant, "lifted": lifted}
    print_outcome(value, text, ok=lifted, exit_code=ExitCode.NOT_FOUND, as_json=as_json)


def stops(as_json: AsJson = False) -> None:
    """List active stops.

    Each row shows who set the stop, why, since when, and until when. It works while Redis is unreachable, too.

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
    who: Annotated[str | None, typer.Option("--who", help="Only acts of this token, person or user.")] = None,
    act: Annotated[
        str | None, typer.Option("--act", help="Only this kind of act, such as approve, cancel or stop.")
    ] = None,
    turn: Annotated[str | None, typer.Option("--turn", metavar="TURN", help="Only acts on this turn.")] = None,
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List the audit log: the acts of people and tokens, newest first.

    Each row shows who acted, when, from where (http, cli, client) and on what. Acts are approvals, cancels, holds,
    pauses, stops, budgets, schedules, tokens, forgotten memories and retried steps. `brainq db prune` deletes old rows.

    \b
    Examples:
      brainq audit
      brainq audit --who ann --act approve
      brainq audit --turn 01k7x2 --json
    """
    with open_brainless_client() as client:
        whole = None if turn is None else client.find(turn).turn_id
        rows = client.audit(limit, who=who, act=act, turn=whole)
    print_rows(rows, _acts_table, "no acts", as_json=as_json)


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
    """Return the login name for the audit log, or "" if the system has none."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""
