"""`brainq versions`: list the running builds, and move turns from one build to another."""

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
        typer.Argument(
            metavar="ACTION", help="release or ramp. If omitted, the builds are listed.", show_default=False
        ),
    ] = "",
    build: Annotated[
        str, typer.Argument(metavar="BUILD", help="A build, as `brainq versions` lists it.", show_default=False)
    ] = "",
    to: Annotated[
        str,
        typer.Option("--to", metavar="BUILD", help="release: the build that continues the turns.", show_default=False),
    ] = "",
    share: Annotated[
        str, typer.Option("--share", metavar="10%", help="ramp: the share of sessions.", show_default=False)
    ] = "",
    other: Annotated[
        str | None,
        typer.Option("--from", metavar="BUILD", help="ramp: the build for the other sessions.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List builds and their turns; release or ramp one.

    A worker's build is the value of its BRAINQ_BUILD. `needed` counts the turns whose pinned brain no other build has;
    when it is 0, you can stop the build's workers. `release` moves turns pinned to one build to the brains with the
    same names in another build. `ramp` starts the turns of a share of all sessions on a build. A hash of the session's
    id selects the sessions, and workers apply the change within 5 s. A share of 0% ends the ramp; 100% uses the build
    for all sessions.

    If BRAINQ_CELLS names several cells, the list covers all of them, and a ramp or release applies to all. A cell that
    does not answer is named. While it does not answer, no build counts as empty, and you have to repeat a change once
    it answers.

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
        raise InvalidInput("action", f"{action[:40]!r} is neither release nor ramp; omit it to list the builds")


def _release(build: str, to: str, *, as_json: bool) -> None:
    if not build or not to:
        raise InvalidInput("build", "name both builds: `brainq versions release 1.4 --to 1.5`")
    with open_brainless_client() as client:
        change = client.release_build(build, to)
    _print_change(change, as_json=as_json)


def _ramp(build: str, share: str, other: str | None, *, as_json: bool) -> None:
    found = _SHARE.fullmatch(share)
    if not build or found is None:
        raise InvalidInput("share", "name the build and its share: `brainq versions ramp 1.5 --share 10%`")
    with open_brainless_client() as client:
        change = client.ramp_build(build, float(found[1]), other)
    _print_change(change, as_json=as_json)


def _print_change(change: BuildChange, *, as_json: bool) -> None:
    if as_json:
        print_json(change)
        return
    note(change.says + (f", in cell {', '.join(change.cells)}" if change.cells else ""), style="green")
    for cell in change.cells_away:
        note(
            f"cell {cell} did not answer and is unchanged; run this command again when `brainq cells` shows that it "
            "answers",
            "yellow",
        )


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
            f"{counted(found.untold, 'turn')} started without a build name: set BRAINQ_BUILD in every worker",
            soft_wrap=True,
            style="dim",
        )
    if not found.is_whole:
        console.print("the counts cover only the newest turns; there are more", style="yellow")


def _workers(build: Build) -> str:
    return ", ".join(f"{count} {pool}" for pool, count in sorted(build.workers.items())) or "none"
