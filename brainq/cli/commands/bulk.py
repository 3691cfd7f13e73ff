"""`brainq bulk`: one verb for every turn that some words describe."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from brainq.cli.commands.stops import shell_user
from brainq.cli.options import AsJson
from brainq.cli.output import clean, counted, note, print_json
from brainq.errors import ExitCode, InvalidInput

if TYPE_CHECKING:
    from brainq.client.bulk import BulkReport
    from brainq.contracts.history import ListedTurn

SHOWN_EVERY = 100
MOST_FAILURES = 10


def bulk(
    verb: Annotated[str, typer.Argument(metavar="VERB", help="cancel, approve, deny, retry or resubmit.")],
    where: Annotated[
        str, typer.Option("--where", help="Which turns, such as `brain=shop state=parked tenant=acme older=2h`.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count what it is for, and do nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    rate: Annotated[str, typer.Option("--rate", help="Turns a second.")] = "20/s",
    reason: Annotated[str, typer.Option("--reason", help="Kept with each; of a denial the model reads it.")] = "",
    as_json: AsJson = False,
) -> None:
    """Cancel, decide, retry or resubmit many turns at once.

    --where takes session, tenant, state, brain, ending, stop_reason, failing=yes, min_cost, text, search, strategy, tag
    and metadata.NAME; older and newer say how long ago the turn was accepted. All of them hold.

    `approve` and `deny` decide every approval that is pending in these turns; `retry` runs finalizer steps that were
    given up; `resubmit` submits failed turns again, each once, with `resubmit_of` in its metadata. Running the same
    again is safe: it does what is left. Each act is in `brainq audit`.

    \b
    Examples:
      brainq bulk cancel --where "brain=shop state=parked older=2h" --dry-run
      brainq bulk deny --where "tenant=acme state=parked" --reason "wrong list" --yes
      brainq bulk resubmit --where "ending=failed stop_reason=model_error newer=1h" --rate 5/s
    """
    from brainq.brain.brains import load_brains
    from brainq.client.bulk import BULK_VERBS, BulkRunner, find_bulk, read_rate, read_where
    from brainq.operator import Operator
    from brainq.settings.deployment import load_settings

    if verb not in BULK_VERBS:
        raise InvalidInput("VERB", f"{verb!r} is not one of {', '.join(BULK_VERBS)}")
    filters, per_s = read_where(where), read_rate(rate)
    settings = load_settings()
    with Operator(settings, load_brains(settings.app)) as operator:
        turns = find_bulk(operator.client, filters)
        _preview(verb, turns)
        if dry_run or not turns:
            if as_json:
                print_json({"verb": verb, "matched": len(turns), "dry_run": dry_run})
            return
        if not yes and not sys.stdin.isatty():
            raise InvalidInput("--yes", "there is no terminal to confirm at; add --yes")
        if not yes and not typer.confirm(f"{verb} {counted(len(turns), 'turn')}?", err=True):
            raise typer.Exit(ExitCode.REFUSED)
        runner = BulkRunner(operator=operator, by=shell_user(), reason=reason, rate=per_s, on_progress=_show_progress)
        report = runner.run(verb, turns)
    _print_report(report, as_json=as_json)


def _preview(verb: str, turns: list[ListedTurn]) -> None:
    groups = Counter(f"{turn.state}{f' of brain {turn.brain}' if turn.brain else ''}" for turn in turns)
    parts = ", ".join(f"{count} {clean(group, lines=False)}" for group, count in groups.most_common())
    note(f"{verb}: {counted(len(turns), 'turn')}{f' ({parts})' if parts else ''}")


def _show_progress(report: BulkReport) -> None:
    if report.matched % SHOWN_EVERY == 0:
        note(f"{report.matched} turns, {report.done} done")


def _print_report(report: BulkReport, *, as_json: bool) -> None:
    if as_json:
        print_json(report)
    else:
        note(f"{report.verb}: {report.done} done of {counted(report.matched, 'turn')}", "green")
        for why, count in report.skipped.most_common():
            note(f"{count} skipped: {why}", "yellow")
        for turn_id, why in report.failed[:MOST_FAILURES]:
            note(f"{turn_id} failed: {clean(why, lines=False)}", "red")
        if len(report.failed) > MOST_FAILURES:
            note(f"and {len(report.failed) - MOST_FAILURES} more failed; --json lists all", "red")
    if report.failed:
        raise typer.Exit(ExitCode.FAILED)
