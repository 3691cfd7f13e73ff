"""Builds and brains side by side: who runs, which turns need which, and what moves them from one to the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar

from brainq.cells.cells import Answers, Cells
from brainq.client.connection import raises_unreachable
from brainq.contracts.base import Wire
from brainq.contracts.build import BuildTurn, BuildWorker, Ramp
from brainq.errors import CellUnreachable, InvalidInput, NotFound
from brainq.wiring import Wiring

MAX_TURNS = 10_000  # that have not ended, and are looked at: some 50 ms
PARTS = 10_000  # into which a ramp divides the sessions


class BuildBrain(Wire):
    """A brain of a build, and its turns that have not ended.

    digest   of what it declares
    live, parked, queued, closing   turns that are pinned to it, or that the build went on with last
    pinned   how many of these are pinned
    """

    name: str
    digest: str
    live: int = 0
    parked: int = 0
    queued: int = 0
    closing: int = 0
    pinned: int = 0


class Build(Wire):
    """A build: its workers by pool, and its brains.

    needed     turns that no other build's workers can go on with. 0: its workers may go
    needed_in  of several cells, how many in each that has the build: the workers of one cell go on with its turns only
    says       that in one sentence
    """

    name: str
    workers: dict[str, int]
    formats: tuple[int, ...] = ()
    brains: tuple[BuildBrain, ...] = ()
    needed: int = 0
    needed_in: dict[str, int] = {}
    says: str = ""


class Versions(Wire):
    """All builds that have workers, or turns; of all cells.

    ramp         where new turns begin, in words; empty: where a coordinator is free
    untold       turns that say no build: neither BRAINQ_BUILD nor a pin was set up where they began
    is_whole     False: there are more turns than were looked at
    cells_away   of several cells those that did not answer: what they have is missing, and no build may go
    """

    builds: tuple[Build, ...]
    ramp: str = ""
    untold: int = 0
    is_whole: bool = True
    cells_away: tuple[str, ...] = ()


class BuildChange(Wire):
    """What a ramp or a release came to.

    says         what is so from now on
    brains       of a release: whose turns go on with the other build
    cells        of several cells those that have it now
    cells_away   those that did not answer: do it again once they do. That changes nothing in the others
    """

    says: str
    brains: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    cells_away: tuple[str, ...] = ()


@raises_unreachable
class VersionVerbs:
    """The part of `Client` that shows builds side by side, and moves turns from one to the other; in every cell."""

    _cells: Cells

    def versions(self) -> Versions:
        """The builds that have workers or turns, and which of them may go."""
        asked = _answered(self._cells.ask(_read_versions))
        if not self._cells.is_routed:
            return asked.values[0]
        return versions_of_cells(asked.answers, asked.away)

    def ramp_build(self, build: str, share: float, other: str | None = None) -> BuildChange:
        """Of all sessions `share` per cent begin their turns on this build; 0 ends the ramp.

        other   the build of the others; None: the only other one that has workers. Raises InvalidInput.
        """
        if not 0 <= share <= 100:
            raise InvalidInput("share", f"{share:g} % cannot be a share; use 0 to 100")
        ramp = _ramp_of(self._workers(), build, share, other) if share else None
        done = _answered(self._cells.ask(lambda wiring: wiring.state.builds.set_ramp(ramp)))
        says = _no_ramp_text(build) if ramp is None else _ramp_text(ramp)
        return self._changed(done, says)

    def release_build(self, build: str, to: str) -> BuildChange:
        """What is pinned to the brains of `build` goes on with those of the same name of the build `to`.

        Raises NotFound for a build that never had workers, InvalidInput where `to` has none, or lacks a brain.
        """
        known = _answered(self._cells.ask(lambda wiring: wiring.state.builds.known())).values
        old: dict[str, str] = {}
        for builds in known:
            old.update(builds.get(build, {}))
        moved = _moved(build, old, to, _running(self._workers(), to))
        done = _answered(self._cells.ask(lambda wiring: wiring.state.builds.release(moved)))
        brains = tuple(name for name, digest in old.items() if digest in moved)
        says = f"what is pinned to {', '.join(brains)} of build {build} goes on with build {to}"
        return self._changed(done, says, brains)

    def _workers(self) -> tuple[BuildWorker, ...]:
        asked = _answered(self._cells.ask(lambda wiring: wiring.state.builds.workers()))
        return tuple(worker for workers in asked.values for worker in workers)

    def _changed(self, done: Answers[None], says: str, brains: tuple[str, ...] = ()) -> BuildChange:
        cells = tuple(name for name, _ in done.answers) if self._cells.is_routed else ()
        return BuildChange(says=says, brains=brains, cells=cells, cells_away=done.away)


A = TypeVar("A")


def _answered(asked: Answers[A]) -> Answers[A]:
    if not asked.answers:
        raise CellUnreachable(asked.away[0], "and no other cell does")
    return asked


def _read_versions(wiring: Wiring) -> Versions:
    state = wiring.state.builds
    turns = state.unended(MAX_TURNS)
    is_whole = len(turns) < MAX_TURNS
    return versions_of(state.workers(), turns, state.known(), state.released(), state.ramp(), is_whole=is_whole)


def versions_of(
    workers: Sequence[BuildWorker],
    turns: Sequence[BuildTurn],
    known: Mapping[str, Mapping[str, str]],
    released: Mapping[str, str],
    ramp: Ramp | None = None,
    *,
    is_whole: bool = True,
) -> Versions:
    """Pure. `known`: by build and brain the digests of builds that were; `released`: digest -> what goes on with it."""
    names = {worker.build for worker in workers} | {turn.build for turn in turns if turn.build}
    served = {worker.build: {digest for digest, _ in worker.brains.values()} for worker in workers}
    builds = [_build(name, workers, turns, known, released, served) for name in sorted(names)]
    text = "" if ramp is None else _ramp_text(ramp)
    return Versions(builds=tuple(builds), ramp=text, untold=sum(not turn.build for turn in turns), is_whole=is_whole)


def versions_of_cells(found: Sequence[tuple[str, Versions]], away: Sequence[str] = ()) -> Versions:
    """Those of each cell, by its name, as one. Pure."""
    names = {build.name for _, each in found for build in each.builds}
    is_only = len({build.name for _, each in found for build in each.builds if build.workers}) < 2
    ramps = {cell: each.ramp for cell, each in found}
    if len({*ramps.values()}) == 1:
        ramp = found[0][1].ramp
    else:
        ramp = "; ".join(f"cell {cell}: {text or 'no ramp'}" for cell, text in ramps.items())
    return Versions(
        builds=tuple(_build_of_cells(name, found, away, is_only=is_only) for name in sorted(names)),
        ramp=ramp,
        untold=sum(each.untold for _, each in found),
        is_whole=all(each.is_whole for _, each in found),
        cells_away=tuple(away),
    )


def _build_of_cells(name: str, found: Sequence[tuple[str, Versions]], away: Sequence[str], *, is_only: bool) -> Build:
    its = {cell: build for cell, each in found for build in each.builds if build.name == name}
    brains: dict[tuple[str, str], BuildBrain] = {}
    for brain in (brain for build in its.values() for brain in build.brains):
        known = brains.get((brain.name, brain.digest))
        brains[brain.name, brain.digest] = brain if known is None else _sum_brains(known, brain)
    pools = sum((Counter(build.workers) for build in its.values()), Counter[str]())
    return Build(
        name=name,
        workers=dict(pools),
        formats=next((build.formats for build in its.values() if build.formats), ()),
        brains=tuple(brains.values()),
        needed=sum(build.needed for build in its.values()),
        needed_in={cell: build.needed for cell, build in its.items()},
        says=_says_of_cells(name, its, away, is_only=is_only),
    )


def _sum_brains(one: BuildBrain, other: BuildBrain) -> BuildBrain:
    counts = ("live", "parked", "queued", "closing", "pinned")
    return one.model_copy(update={count: getattr(one, count) + getattr(other, count) for count in counts})


def _says_of_cells(name: str, its: Mapping[str, Build], away: Sequence[str], *, is_only: bool) -> str:
    needed = [cell for cell, build in its.items() if build.needed]
    waits = [cell for cell in needed if not its[cell].workers]
    if waits:
        count = sum(its[cell].needed for cell in waits)
        remedy = f"start its workers there, or brainq versions release {name} --to BUILD"
        return f"{_turns(count)} wait for build {name} in cell {', '.join(waits)}: {remedy}"
    if needed:
        count = sum(its[cell].needed for cell in needed)
        return f"{_turns(count)} need build {name} in cell {', '.join(needed)}: its workers stay there"
    if away:
        return f"build {name} is empty in cell {', '.join(its)}; {', '.join(away)} did not answer: its workers stay"
    if not any(build.workers for build in its.values()):
        return f"build {name} has no workers, and no turn needs it"
    return f"build {name} is the only one" if is_only else f"build {name} is empty in every cell: its workers may go"


def _no_ramp_text(build: str) -> str:
    return (
        "the ramp has ended: every session begins where a coordinator is free, also on build "
        f"{build} while it has workers; to keep turns off it, ramp the other build to 100 %"
    )


def _ramp_text(ramp: Ramp) -> str:
    return f"{ramp.share * 100 / PARTS:g} % of sessions begin on {ramp.to}, the others on {ramp.other}"


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
    its = [turn for turn in turns if turn.build == name]
    needed = [
        turn
        for turn in its
        if turn.is_pinned and turn.digest not in elsewhere and released.get(turn.digest) not in elsewhere
    ]
    digests = {brain: digest for worker in own for brain, (digest, _) in worker.brains.items()} or dict(
        known.get(name, {})
    )
    pools = Counter(worker.pool for worker in own)
    return Build(
        name=name,
        workers=dict(pools),
        formats=own[0].formats if own else (),
        brains=tuple(_brain(brain, digest, its) for brain, digest in digests.items()),
        needed=len(needed),
        says=_says(name, len(own), len(needed), is_only=len(served) < 2),
    )


def _says(name: str, workers: int, needed: int, *, is_only: bool) -> str:
    turns = _turns(needed)
    if needed and not workers:
        return f"{turns} wait for build {name}: start its workers, or brainq versions release {name} --to BUILD"
    if needed:
        return f"{turns} need build {name}: its workers stay"
    if not workers:
        return f"build {name} has no workers, and no turn needs it"
    if is_only:
        return f"build {name} is the only one"
    return f"build {name} is empty: its workers may go"


def _turns(count: int) -> str:
    return "1 turn" if count == 1 else f"{count} turns"


def _brain(name: str, digest: str, turns: Sequence[BuildTurn]) -> BuildBrain:
    its = [turn for turn in turns if turn.digest == digest]
    states = Counter(turn.state for turn in its)
    return BuildBrain(
        name=name,
        digest=digest,
        live=states["active"],
        parked=states["parked"],
        queued=states["queued"],
        closing=states["closing"],
        pinned=sum(turn.is_pinned for turn in its),
    )


def _moved(build: str, old: Mapping[str, str], to: str, new: Mapping[str, str]) -> dict[str, str]:
    """By the digest of what is released the one that goes on. `old`, `new`: of both builds, by brain."""
    if not old:
        raise NotFound(f"no build {build!r} had workers in the last 90 days; brainq versions lists those there are")
    if lacking := sorted(set(old) - set(new)):
        raise InvalidInput("to", f"build {to!r} has no brain {lacking[0]!r}, to which turns of {build!r} may be pinned")
    moved = {digest: new[name] for name, digest in old.items() if digest != new[name]}
    if not moved:
        raise InvalidInput("to", f"builds {build!r} and {to!r} have the same brains: there is nothing to release")
    return moved


def _ramp_of(workers: Sequence[BuildWorker], to: str, share: float, other: str | None) -> Ramp:
    _running(workers, to)
    others = sorted({worker.build for worker in workers} - {to})
    if other is None and len(others) != 1:
        found = f"there are {', '.join(others)}" if others else "there is none"
        raise InvalidInput("from", f"name the build that the other sessions begin on: {found} beside {to!r}")
    ramp = Ramp(to, other or others[0], round(share * PARTS / 100))
    _running(workers, ramp.other)
    return ramp


def _running(workers: Sequence[BuildWorker], build: str) -> dict[str, str]:
    """The digests of its brains. Raises InvalidInput for a build without workers."""
    its = [worker for worker in workers if worker.build == build]
    if not its:
        names = ", ".join(sorted({worker.build for worker in workers})) or "there are none"
        raise InvalidInput("build", f"no worker of build {build!r} is alive; the builds with workers: {names}")
    return {name: digest for worker in its for name, (digest, _) in worker.brains.items()}
