"""`brainq list`: the newest turns; `brainq sessions`: the sessions they are of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, cast

import typer

from brainq.cli.options import App, AsJson
from brainq.contracts.status import Ending

if TYPE_CHECKING:
    from brainq.client.options import TurnFilters
    from brainq.contracts.listing import Sort

Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="At most so many.")]
After = Annotated[
    str | None, typer.Option("--after", metavar="TURN", help="The next page: behind this turn.")
]


def list_turns(
    session: Annotated[str | None, typer.Option("--session", "-s", help="Only this session's.")] = None,
    state: Annotated[
        str | None,
        typer.Option(
            "--state",
            help="queued, active, parked, closing, accepted (any of these), ended, rejected, or an ending.",
        ),
    ] = None,
    brain: Annotated[str | None, typer.Option("--brain", help="Only those that name this brain.")] = None,
    stop_reason: Annotated[
        str | None, typer.Option("--stop-reason", help="Such as answered, max_steps, model_error.")
    ] = None,
    failing: Annotated[
        bool,
        typer.Option("--failing", help="Only those that failed, or with calls or finalizer steps that did."),
    ] = False,
    min_cost: Annotated[
        float | None, typer.Option("--min-cost", metavar="USD", help="Only those that cost so much, or more.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="SPAN", help="Only those of the last 90m, 12h, 30d or 8w."),
    ] = None,
    text: Annotated[
        str, typer.Option("--text", help="Only those whose id, or session, holds it, or of this request key.")
    ] = "",
    strategy: Annotated[
        str | None,
        typer.Option(
            "--strategy", help="direct_answer, tool_assisted, retrieval_augmented or web_augmented."
        ),
    ] = None,
    search: Annotated[
        str, typer.Option("--search", help="Only those whose message, answer, metadata or ids hold it.")
    ] = "",
    metadata: Annotated[
        list[str] | None,
        typer.Option(
            "--metadata", metavar="NAME=VALUE", help="Only those submitted with this; all of several hold."
        ),
    ] = None,
    tags: Annotated[
        list[str] | None, typer.Option("--tag", help="Only those submitted with this prompt tag; repeatable.")
    ] = None,
    sort: Annotated[str, typer.Option("--sort", help="newest, oldest, cost or tokens.")] = "newest",
    limit: Limit = 20,
    after: After = None,
    as_json: AsJson = False,
    app: App = "",
) -> None:
    """List turns, the newest first.

    They come from SQL, with what Redis says of those that have not ended.

    \b
    Examples:
      brainq list
      brainq list --session s1 --state failed
      brainq list --failing --since 12h
      brainq list --metadata customer=42 --tag billing
      brainq list --state accepted --json
    """
    from brainq.cli.output import print_json, say, stdout
    from brainq.cli.reach import observer
    from brainq.cli.span import span_s
    from brainq.cli.turn_rows import as_table
    from brainq.client.turn_list import checked_filter, read_pairs

    is_ending = state in tuple(Ending)
    began = None if since is None else datetime.now(UTC) - timedelta(seconds=span_s("--since", since))
    asked: TurnFilters = {
        "session": session,
        "state": None if is_ending else state,
        "ending": state if is_ending else None,
        "brain": brain,
        "stop_reason": stop_reason,
        "failing": failing,
        "min_cost_usd": min_cost,
        "since": began,
        "text": text,
        "strategy": strategy,
        "search": search,
        "metadata": read_pairs("--metadata", metadata or []),
        "prompt_tags": tags or [],
        "sort": cast("Sort", sort),
    }
    checked_filter(**asked)  # before anything is opened
    with observer() as seen:
        rows = seen.turns(limit=limit, after=after, **asked)
        if seen.why_away:
            say(f"Redis is away, this is what SQL knows: {seen.why_away}", style="yellow")
    if as_json:
        print_json([row.model_dump(mode="json") for row in rows])
    elif not rows:
        say(
            "no turns"
            + (f" of session {session!r}" if session else "")
            + (f" in state {state!r}" if state else "")
        )
    else:
        stdout().print(as_table(rows))


def list_sessions(
    prefix: Annotated[str, typer.Option("--prefix", "-p", help="Only those whose id begins so.")] = "",
    limit: Limit = 20,
    after: After = None,
    as_json: AsJson = False,
    app: App = "",
) -> None:
    """List sessions, the one with the newest turn first.

    How many turns each has had, how its last one stands, and how many wait.

    \b
    Examples:
      brainq sessions
      brainq sessions --prefix acme: --json
    """
    from brainq.cli.output import print_json, say, stdout
    from brainq.cli.reach import observer
    from brainq.cli.turn_rows import sessions_as_table

    with observer() as seen:
        rows = seen.sessions(prefix, limit, after=after)
        if seen.why_away:
            say(f"Redis is away, this is what SQL knows: {seen.why_away}", style="yellow")
    if as_json:
        print_json([row.model_dump(mode="json") for row in rows])
    elif rows:
        stdout().print(sessions_as_table(rows))
    else:
        say("no sessions" + (f" that begin with {prefix!r}" if prefix else ""))
