"""Builds and brains side by side: the workers of each build, the turns that need them, and sentences about both for
people.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from brainq.app.wiring import Wiring
from brainq.app.wiring.cells import Cells
from brainq.contracts.answers import Answers
from brainq.contracts.build import Build, BuildBrain, BuildTurn, BuildWorker, Ramp, Versions
from brainq.errors import CellUnreachable, InvalidInput, NotFound
from brainq.fleet.combine import combine

MAX_TURNS = 10_000
"""The maximum number of live and waiting turns that are read, which takes about 50 ms."""
PARTS = 10_000  # A ramp divides the sessions into this many parts.


def read_versions(cells: Cells) -> Versions:
    """See `Client.versions`. Raises CellUnreachable if no cell answers."""
    found = cells.ask(lambda wiring: (_read_cell(wiring), wiring.state.builds.ramp()))
    if not found.answers:
        raise CellUnreachable(found.away[0], "nor does any other cell")
    return versions_of_cells(
        Answers(tuple((name, versions) for name, (versions, _) in found.answers), found.away),
        {name: ramp for name, (_, ramp) in found.answers},
        is_one=len(cells.names) == 1,
    )


def _read_cell(wiring: Wiring) -> Versions:
    state = wiring.state.builds
    turns = state.unended(MAX_TURNS)
    return versions_of(state.workers(), turns, state.known(), state.released(), is_whole=len(turns) < MAX_TURNS)


def versions_of(
    workers: Sequence[BuildWorker],
    turns: Sequence[BuildTurn],
    known: Mapping[str, Mapping[str, str]],
    released: Mapping[str, str],
    *,
    is_whole: bool = True,
) -> Versions:
    """Return the builds of one cell, in numbers. Pure.

    known: the digests of builds that had workers, by build and brain.
    released: the digest whose build continues a digest's turns, by that digest.
    """
    names = {worker.build for worker in workers} | {turn.build for turn in turns if turn.build}
    served = {worker.build: {digest for digest, _ in worker.brains.values()} for worker in workers}
    return Versions(
        builds=tuple(_build(name, workers, turns, known, released, served) for name in sorted(names)),
        untold=sum(not turn.build for turn in turns),
        is_whole=is_whole,
    )


def _build(
    name: str,
    workers: Sequence[BuildWorker],
    turns: Sequence[BuildTurn],
    known: Mapping[str, Mapping[str, str]],
    released: Mapping[str, str],
    served: Mapping[str, set[str]],
) -> Build:
    own = [worker for worker in workers if worker.build == name]
    elsewhere = set[str]().union(*(digests for build, digests in served.items() if build != name))
    continued = [turn for turn in turns if turn.build == name]
    needed = [
        turn
        for turn in continued
        if turn.is_pinned and turn.digest not in elsewhere and released.get(turn.digest) not in elsewhere
    ]
    digests = {brain: digest for worker in own for brain, (digest, _) in worker.brains.items()} or dict(
        known.get(name, {})
    )
    return Build(
        name=name,
        workers=dict(Counter(worker.pool for worker in own)),
        formats=own[0].formats if own else (),
        brains=tuple(_brain(brain, digest, continued) for brain, digest in digests.items()),
        needed=len(needed),
    )


def _brain(name: str, digest: str, turns: Sequence[BuildTurn]) -> BuildBrain:
    own = [turn for turn in turns if turn.digest == digest]
    states = Counter(turn.state for turn in own)
    return BuildBrain(
        name=name,
        digest=digest,
        live=states["active"],
        parked=states["parked"],
        queued=states["queued"],
        closing=states["closing"],
        pinned=sum(turn.is_pinned for turn in own),
    )


def versions_of_cells(found: Answers[Versions], ramps: Mapping[str, Ramp | None], *, is_one: bool = False) -> Versions:
    """Return the builds of all cells together, with sentences for people. Pure.

    ramps: the ramps of each cell that answered, by the cell's name.
    is_one: True if the deployment has one cell. The sentences then name no cell.
    """
    cells = {cell: {build.name: build for build in versions.builds} for cell, versions in found.answers}
    if not is_one:
        found = Answers(tuple((cell, _of_cell(cell, versions)) for cell, versions in found.answers), found.away)
    whole = combine(found.values)
    is_only = sum(bool(build.workers) for build in whole.builds) < 2
    texts = {
        build.name: build_text(
            build,
            {cell: own[build.name] for cell, own in cells.items() if build.name in own},
            found.away,
            is_only=is_only,
            is_one=is_one,
        )
        for build in whole.builds
    }
    return whole.model_copy(
        update={
            "builds": tuple(build.model_copy(update={"says": texts[build.name]}) for build in whole.builds),
            "ramp": ramps_text(ramps),
            "cells_away": found.away,
        }
    )


def _of_cell(cell: str, versions: Versions) -> Versions:
    builds = (build.model_copy(update={"needed_in": {cell: build.needed}}) for build in versions.builds)
    return versions.model_copy(update={"builds": tuple(builds)})


def build_text(whole: Build, cells: Mapping[str, Build], away: Sequence[str], *, is_only: bool, is_one: bool) -> str:
    """Return a sentence about whether a build's workers can be shut down. Pure.

    cells: the build in each cell that has it.
    """
    needed = {cell: build.needed for cell, build in cells.items() if build.needed}
    waiting = {cell: count for cell, count in needed.items() if not cells[cell].workers}
    names = ", ".join(waiting or needed or cells)
    where, there = ("", "") if is_one else (f" in cell {names}", " there")
    if waiting:
        turns = _turns(sum(waiting.values()), "wait")
        remedy = f"start its workers{there}, or brainq versions release {whole.name} --to BUILD"
        return f"{turns} for build {whole.name}{where}: {remedy}"
    if needed:
        return f"{_turns(whole.needed, 'need')} build {whole.name}{where}: keep its workers{there}"
    if away:
        return f"build {whole.name} is empty{where}; {', '.join(away)} did not answer, so keep its workers"
    if not whole.workers:
        return f"build {whole.name} has no workers, and no turn needs it"
    if is_only:
        return f"build {whole.name} is the only one"
    return f"build {whole.name} is empty{'' if is_one else ' in every cell'}: its workers can stop"


def _turns(count: int, verb: str) -> str:
    return f"1 turn {verb}s" if count == 1 else f"{count} turns {verb}"


def ramp_text(ramp: Ramp) -> str:
    return f"{ramp.share * 100 / PARTS:g} % of sessions begin on {ramp.to}, the others on {ramp.other}"


def ramps_text(ramps: Mapping[str, Ramp | None]) -> str:
    """Return the ramps of all cells as text. Cells are named only if their ramps differ."""
    texts = {cell: ramp_text(ramp) if ramp else "" for cell, ramp in ramps.items()}
    if len({*texts.values()}) == 1:
        return next(iter(texts.values()))
    return "; ".join(f"cell {cell}: {text or 'no ramp'}" for cell, text in texts.items())


def ramp_of(workers: Sequence[BuildWorker], to: str, share: float, other: str | None) -> Ramp:
    """Return the ramp that begins the turns of `share` per cent of the sessions on the build `to`. Pure.

    other: the build of the other sessions. None means the only other build. Raises InvalidInput.
    """
    running(workers, to)
    others = sorted({worker.build for worker in workers} - {to})
    if other is None and len(others) != 1:
        found = f"there are {', '.join(others)}" if others else "there is none"
        raise InvalidInput("from", f"name the build for the other sessions: besides {to!r}, {found}")
    ramp = Ramp(to, other or others[0], round(share * PARTS / 100))
    running(workers, ramp.other)
    return ramp


def running(workers: Sequence[BuildWorker], build: str) -> dict[str, str]:
    """Return the digests of a build's brains by name. Raises InvalidInput if it has no workers."""
    own = [worker for worker in workers if worker.build == build]
    if not own:
        names = ", ".join(sorted({worker.build for worker in workers})) or "there are none"
        raise InvalidInput("build", f"build {build!r} has no running workers; builds with workers: {names}")
    return {name: digest for worker in own for name, (digest, _) in worker.brains.items()}


def released_digests(build: str, old: Mapping[str, str], to: str, new: Mapping[str, str]) -> dict[str, str]:
    """Return the digest whose build continues a digest's turns, by each released digest. Pure.

    old, new: the digests of both builds, by brain. Raises NotFound and InvalidInput.
    """
    if not old:
        raise NotFound(f"build {build!r} had no workers in the last 90 days; `brainq versions` lists the builds")
    if lacking := sorted(set(old) - set(new)):
        raise InvalidInput(
            "to", f"build {to!r} has no brain {lacking[0]!r}, to whose name turns of {build!r} may be pinned"
        )
    moved = {digest: new[name] for name, digest in old.items() if digest != new[name]}
    if not moved:
        raise InvalidInput("to", f"builds {build!r} and {to!r} have the same brains: there is nothing to release")
    return moved
