"""`brainq versions`: builds side by side, and what moves turns from one to the other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from brainq.cli.connect import open_brainless_client
from brainq.cli.options import AsJson
from brainq.cli.output import counted, note, note_cells_away, print_json, print_page
from brainq.errors import InvalidInput

if TYPE_CHECKING:
    from rich.console import Console

    from brainq.contracts.build import Build, BuildChange, Versions

_SHARE = re.compile(r"(\d{1,3}(?:\.\d+)?) ?%?")


def versions(
    action: Annotated[
        str,
        typer.Argument(metavar="ACTION", help="release or ramp; by default they are listed.", show_default=False),
    ] = "",
    build: Annotated[str, typer.Argument(metavar="BUILD", help="As it is listed.", show_default=False)] = "",
    to: Annotated[str, typer.Option("--to", metavar="BUILD", help="release: where turns go.", show_default=False)] = "",
    share: Annotated[
        str, typer.Option("--share", metavar="10%", help="ramp: how many of the sessions.", show_default=False)
    ] = "",
    other: Annotated[
        str | None, typer.Option("--from", metavar="BUILD", help="ramp: where the others begin.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List builds and their turns; release or ramp one.

    A build is what BRAINQ_BUILD of a worker names. `needed` are turns whose pinned brain no other build has: at 0 the
    build's workers may go. `release` has what is pinned to a build go on with another one's brains, of the same names.
    `ramp` lets a share of all sessions begin their turns on a build, chosen by a hash of the session; workers learn
    of it within 5 s. 0% ends it, 100% makes it all.

    Of several cells (BRAINQ_CELLS) all are asked, and a ramp or release is for all. One that does not answer is
    named: no build is empty then, and a change has to be made again.

    \b
    Examples:
      brainq versions
      brainq versions release 1.4 --to 1.5
      brainq versions ramp 1.5 --share 10%
      brainq versions ramp 1.5 --share 50% --from 1.4
    """
    if action == "":
        with open_brainless_client() as client:
            found = client.versions()
        print_page(found, _print_versions, as_json=as_json)
        note_cells_away(found.cells_away)
    elif action == "release":
        _release(build, to, as_json=as_json)
    elif action == "ramp":
        _ramp(build, share, other, as_json=as_json)
    else:
        raise InvalidInput("action", f"{action[:40]!r} is neither release nor ramp; leave it out to list the builds")


def _release(build: str, to: str, *, as_json: bool) -> None:
    if not build or not to:
        raise InvalidInput("build", "name both: brainq versions release BUILD --to BUILD")
    with open_brainless_client() as client:
        change = client.release_build(build, to)
    _print_change(change, as_json=as_json)


def _ramp(build: str, share: str, other: str | None, *, as_json: bool) -> None:
    found = _SHARE.fullmatch(share)
    if not build or found is None:
        raise InvalidInput("share", "name the build and the share: brainq versions ramp BUILD --share 10%")
    with open_brainless_client() as client:
        change = client.ramp_build(build, float(found[1]), other)
    _print_change(change, as_json=as_json)


def _print_change(change: BuildChange, *, as_json: bool) -> None:
    if as_json:
        print_json(change)
        return
    note(change.says + (f", in cell {', '.join(change.cells)}" if change.cells else ""), style="green")
    for cell in change.cells_away:
        note(f"cell {cell} did not answer: do this again once it does (`brainq cells`)", "yellow")


def _print_versions(console: Console, found: Versions) -> None:
    from brainq.cli.pages.layout import PageTable, fact, key, words

    rows = [
        {
            key("build"): build.name,
            fact("workers", 5): _workers(build),
            fact("brain", 4): f"{brain.name} {brain.digest}",
            fact("live", 3, right=True): str(brain.live),
            fact("parked", 3, right=True): str(brain.parked),
            fact("queued", 2, right=True): str(brain.queued),
            fact("pinned", 2, right=True): str(brain.pinned),
            words("", 1): "",
        }
        for build in found.builds
        for brain in build.brains
    ]
    console.print(PageTable(rows))
    for build in found.builds:
        console.print(build.says, soft_wrap=True)
    if found.ramp:
        console.print(found.ramp, soft_wrap=True)
    if found.untold:
        console.print(
            f"{counted(found.untold, 'turn')} of no build: set BRAINQ_BUILD in every worker",
            soft_wrap=True,
            style="dim",
        )
    if not found.is_whole:
        console.print("there are more turns than were looked at", style="yellow")


def _workers(build: Build) -> str:
    return ", ".join(f"{count} {pool}" for pool, count in sorted(build.workers.items())) or "none"
