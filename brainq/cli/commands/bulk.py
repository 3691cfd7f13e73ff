"""`brainq bulk`: apply one verb to every turn that matches a filter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from brainq.cli.commands.stops import shell_user
from brainq.cli.options import AsJson, Yes, require_consent
from brainq.cli.output import clean, counted, note, print_json
from brainq.errors import ExitCode

if TYPE_CHECKING:
    from brainq.contracts.bulk import BulkReport

SHOWN_EVERY = 100
MAX_SHOWN_FAILURES = 10


def bulk(
    verb: Annotated[str, typer.Argument(metavar="VERB", help="cancel, approve, deny, retry or resubmit.")],
    where: Annotated[
        str, typer.Option("--where", help="Which turns, such as `brain=shop state=parked tenant=acme older=2h`.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count the matching turns and change nothing.")] = False,
    yes: Yes = False,
    rate: Annotated[str, typer.Option("--rate", help="Turns a second.")] = "20/s",
    reason: Annotated[
        str, typer.Option("--reason", help="Recorded with each turn; for deny, shown to the model.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Cancel, decide, retry or resubmit many turns at once.

    --where accepts session, tenant, state, brain, ending, stop_reason, failing=yes, unknown=yes, min_cost, text,
    search, strategy, tag and metadata.NAME. older and newer compare the time since the turn was accepted. A turn must
    match all conditions.

    `approve` and `deny` decide every pending approval of the matching turns. `retry` runs dead finalizer steps.
    `resubmit` submits each failed turn once more, with `resubmit_of` in its metadata. It is safe to run the same
    command again: turns that are already done are skipped. `brainq audit` lists each act.

    \b
    Examples:
      brainq bulk cancel --where "brain=shop state=parked older=2h" --dry-run
      brainq bulk deny --where "tenant=acme state=parked" --reason "wrong list" --yes
      brainq bulk resubmit --where "ending=failed stop_reason=model_error newer=1h" --rate 5/s
    """
    from brainq.client.operator import Operator
    from brainq.contracts.bulk import checked_verb, read_rate
    from brainq.engine.brain.brains import load_brains
    from brainq.runtime.settings.deployment import load_settings

    known, per_s = checked_verb(verb), read_rate(rate)
    settings = load_settings()
    with Operator(settings, load_brains(settings.app)) as operator:
        found = operator.client.bulk(known, where, dry_run=True, on_progress=_show_progress)
        _print_preview(found)
        if dry_run or not found.matched or found.state != "done":
            _print_report(found, as_json=as_json)
            return
        require_consent(f"{verb} {counted(found.matched, 'turn')}?", yes=yes)
        report = operator.client.bulk(
            known,
            where,
            rate=per_s,
            most=found.matched,  # Act on at most as many turns as were confirmed.
            reason=reason,
            by=shell_user(),
            on_progress=_show_progress,
        )
    _print_report(report, as_json=as_json)


def _print_preview(found: BulkReport) -> None:
    parts = ", ".join(f"{count} {clean(kind, lines=False)}" for kind, count in found.kinds.items())
    note(f"{found.plan.verb}: {counted(found.matched or 0, 'turn')}{f' ({parts})' if parts else ''}")
    if found.cells_away:
        note(f"turns in {', '.join(found.cells_away)} are not counted, because that cell did not answer", "yellow")


def _show_progress(report: BulkReport) -> None:
    if not report.tried:
        note(f"searching for turns: {report.matched or 0:,} found so far", "dim")
    elif report.tried % SHOWN_EVERY == 0:
        note(f"{report.tried} turns, {report.done} done")


def _print_report(report: BulkReport, *, as_json: bool) -> None:
    if as_json:
        print_json(report)
    elif not report.plan.dry_run:
        _print_outcome(report)
    if report.state == "failed" and not as_json:
        note(f"stopped: {clean(report.error, lines=False)}; run the same command again for the remaining turns", "red")
    if report.failures or report.state == "failed":
        raise typer.Exit(ExitCode.FAILED)


def _print_outcome(report: BulkReport) -> None:
    note(f"{report.plan.verb}: {report.done} done of {counted(report.matched or 0, 'turn')}", "green")
    for why, count in sorted(report.skipped.items(), key=lambda item: -item[1]):
        note(f"{count} skipped: {why}", "yellow")
    for failed in report.failed[:MAX_SHOWN_FAILURES]:
        note(f"{failed.turn_id} failed: {clean(failed.why, lines=False)}", "red")
    if report.failures > MAX_SHOWN_FAILURES:
        note(f"and {report.failures - MAX_SHOWN_FAILURES} more failed; --json lists them", "red")
