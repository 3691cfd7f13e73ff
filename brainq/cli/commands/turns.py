"""`brainq list`, `show`, `tail` and `finalize retry`: list and inspect turns, and retry dead finalizer steps."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from brainq.cli.connect import open_operator
from brainq.cli.help import command_group, subcommand
from brainq.cli.options import AsJson, Limit, TurnArgument, parse_when
from brainq.cli.output import clean, note, print_json, print_page, print_rows
from brainq.cli.waiting import follow_events
from brainq.contracts.descriptions import TURN_FILTERS
from brainq.contracts.status import Ending
from brainq.errors import ExitCode, InvalidInput

if TYPE_CHECKING:
    from brainq.client.options import TurnFilters
    from brainq.contracts.history import Sort

After = Annotated[str | None, typer.Option("--after", metavar="TURN", help="The next page: turns after this one.")]


def list_turns(
    session: Annotated[str | None, typer.Option("--session", "-s", help=TURN_FILTERS["session"])] = None,
    state: Annotated[
        str | None,
        typer.Option(
            "--state",
            help="queued, active, parked, closing, accepted (any of these), ended, rejected, or how the turn ended.",
        ),
    ] = None,
    brain: Annotated[str | None, typer.Option("--brain", help=TURN_FILTERS["brain"])] = None,
    stop_reason: Annotated[str | None, typer.Option("--stop-reason", help=TURN_FILTERS["stop_reason"])] = None,
    failing: Annotated[bool, typer.Option("--failing", help=TURN_FILTERS["failing"])] = False,
    unknown: Annotated[bool, typer.Option("--unknown", help=TURN_FILTERS["unknown"])] = False,
    min_cost: Annotated[
        float | None, typer.Option("--min-cost", metavar="USD", help=TURN_FILTERS["min_cost_usd"])
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="WHEN", help="Only turns accepted in the last 90m, 12h, 30d or 8w, or since a time."
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            "--until", metavar="WHEN", help="Only turns accepted before 2h ago (2h), or 2031-01-05T09:30:00Z."
        ),
    ] = None,
    text: Annotated[str, typer.Option("--text", help=TURN_FILTERS["text"])] = "",
    strategy: Annotated[
        str | None,
        typer.Option("--strategy", help=TURN_FILTERS["strategy"]),
    ] = None,
    search: Annotated[str, typer.Option("--search", help=TURN_FILTERS["search"])] = "",
    metadata: Annotated[
        list[str] | None,
        typer.Option("--metadata", metavar="NAME=VALUE", help=TURN_FILTERS["metadata"]),
    ] = None,
    tags: Annotated[list[str] | None, typer.Option("--tag", help=TURN_FILTERS["prompt_tags"])] = None,
    sort: Annotated[str, typer.Option("--sort", help=TURN_FILTERS["sort"])] = "newest",
    limit: Limit = 20,
    after: After = None,
    as_json: AsJson = False,
) -> None:
    """List turns, newest first.

    The list comes from SQL; the state of live turns comes from Redis.

    \b
    Examples:
      brainq list
      brainq list --session s1 --state failed
      brainq list --failing --since 12h
      brainq list --metadata customer=42 --tag billing
      brainq list --state accepted --json
    """
    from brainq.cli.pages.sessions import turns_table
    from brainq.client.lists import checked_filter, read_metadata_pairs
    from brainq.contracts.history import LIST_STATES

    is_ending = state in tuple(Ending)
    if state is not None and not is_ending and state not in LIST_STATES:
        raise InvalidInput("--state", f"{state!r} is not one of {', '.join((*LIST_STATES, *Ending))}")
    filters: TurnFilters = {
        "session": session,
        "state": None if is_ending else state,
        "ending": state if is_ending else None,
        "brain": brain,
        "stop_reason": stop_reason,
        "failing": failing,
        "unknown": unknown,
        "min_cost_usd": min_cost,
        "since": None if since is None else parse_when("--since", since),
        "until": None if until is None else parse_when("--until", until),
        "text": text,
        "strategy": strategy,
        "search": search,
        "metadata": read_metadata_pairs("--metadata", metadata or []),
        "prompt_tags": tags or [],
        "sort": cast("Sort", sort),
    }
    checked_filter(**filters)  # refuse bad input before a connection is opened
    with open_operator() as operator:
        rows = operator.turns(limit=limit, after=after, **filters)
        if operator.why_away:
            note(f"Redis is unreachable, so this list comes from SQL only: {operator.why_away}", style="yellow")
    none = "no turns" + (f" of session {session!r}" if session else "") + (f" in state {state!r}" if state else "")
    print_rows(rows, turns_table, none, as_json=as_json)


def show(
    turn: TurnArgument,
    timeline: Annotated[
        bool, typer.Option("--timeline", "-t", help="Show steps, calls and waits as bars over time.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show a turn: what happened, what happens next and why.

    The page shows the turn's state, its calls with arguments and results, the budget it has used, its owner, retries of
    the model, and the intents of calls with effects. It lists open approvals and the commands that decide them, holds,
    and input sent while the turn ran. After the end it also shows the cost of each model call, the finalizer's steps,
    judgements, and memories. It also works for turns that are only in SQL. If the brain sets `redact_logs`, arguments
    and results of ended turns are not available.

    TURN-CALL, such as 01k7x2-c1-0, shows one call with its complete arguments and result. For a write it also shows the
    idempotency key and a record of each attempt.

    \b
    Examples:
      brainq show 01k7x2
      brainq show order-4711              a request key
      brainq show 01k7x2 --timeline
      brainq show 01k7x2 --json
      brainq show 01k7x2-c1-0             one call
    """
    from brainq.cli.pages.timeline import print_timeline
    from brainq.cli.pages.turn import print_call, print_turn

    with open_operator() as operator:
        if timeline:
            print_page(operator.timeline(turn), print_timeline, as_json=as_json)
        elif call := operator.call(turn):
            print_page(call, print_call, as_json=as_json)
        else:
            print_page(operator.facts(turn), print_turn, as_json=as_json)


def cassette(
    turn: TurnArgument,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it to this file.")
    ] = None,
) -> None:
    """Write a pytest file that plays a turn again.

    It has the model's replies, the tools' results and people's decisions, and runs in one process. Whatever looks like
    a secret is hidden; read the file before you share it.

    \b
    Examples:
      brainq cassette 01k7x2
      brainq cassette 01k7x2 -o tests/test_refund.py
    """
    from brainq.runtime.settings.deployment import settings_here
    from brainq.testing.cassette import cassette as write

    with open_operator() as operator:
        text = write(operator.facts(turn), settings_here().app)
    if output is None:
        typer.echo(text, nl=False)
        return
    output.write_text(text)
    note(f"wrote {output}; run it with pytest")


def tail(
    turn: TurnArgument,
    after: Annotated[int, typer.Option("--after", min=0, help="Start after this event number.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Follow a turn's events until it ends.

    \b
    Examples:
      brainq tail 01k7x2
      brainq tail order-4711              a request key
      brainq tail 01k7x2 --after 12 --json
    """

    with open_operator() as operator:
        row = operator.find(turn)
        client = operator.client
        if row.state == "rejected":
            note(f"turn {row.turn_id} was rejected: {row.reject_reason}", style="yellow")
            return
        if not follow_events(client.handle(row.turn_id), after=after, as_json=as_json).final:
            note(
                f"the events of turn {row.turn_id} are no longer in Redis; `brainq show` prints its record in SQL",
                style="yellow",
            )


finalize = command_group("Retry failed work after the answer, such as memory and judges.")


@subcommand(finalize, "retry")
def retry(
    turn: TurnArgument,
    step: Annotated[
        str,
        typer.Argument(
            metavar="STEP",
            help="The step to retry, `judge:NAME`, or `judges`. By default everything that is dead.",
            show_default=False,
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Retry dead finalizer steps and judgements of a turn.

    They run in this process with the brain of BRAINQ_APP, even if the turn is no longer in Redis. Each step writes to
    SQL only once, whichever process runs it; callbacks receive the same step key as before. The exit code is 1 if
    something fails again. --json prints one object per step, or [] if nothing is dead.

    \b
    Examples:
      brainq finalize retry 01k7x2                     every dead step and judgement
      brainq finalize retry 01k7x2 memory              one step
      brainq finalize retry 01k7x2 judge:relevance     one judgement
      brainq finalize retry 01k7x2 judges              every dead judgement
    """
    from brainq.client.operator import Operator
    from brainq.engine.brain.brains import load_brains
    from brainq.runtime.observe.otel_setup import start_traces
    from brainq.runtime.settings.deployment import load_settings

    failed = False
    settings = load_settings()
    with ExitStack() as after, Operator(settings, load_brains(settings.app)) as operator:
        after.callback(start_traces("retry"))
        row = operator.find(turn)
        wanted = operator.given_up(row.turn_id, step)
        if not wanted and as_json:
            print_json([])
        elif not wanted:
            note(f"turn {row.turn_id} has no dead steps or judgements; there is nothing to retry", style="green")
        for name in wanted:
            if not as_json:
                note(f"{name}: running ...", style="dim")
            again = operator.retry(row.turn_id, name)
            failed = failed or again.word == "failed"
            if as_json:
                print_json({"turn_id": row.turn_id, "step": name, "outcome": again.word, "error": again.error})
                continue
            outcome = {"done": "done", "taken": "a worker is running it already", "failed": "failed again"}[again.word]
            why = f": {clean(again.error, lines=False)}" if again.error else ""
            note(f"{name}: {outcome}{why}", style="red" if again.word == "failed" else "green")
    raise typer.Exit(ExitCode.FAILED if failed else ExitCode.OK)
