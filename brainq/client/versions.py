"""Builds and brains side by side: who runs, which turns need which, and what moves them from one to the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from brainq.client.client import Client
from brainq.client.connection import wiring_of
from brainq.contracts.base import Wire
from brainq.contracts.build import BuildTurn, BuildWorker, Ramp
from brainq.errors import InvalidInput, NotFound

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

    needed   turns that no other build's workers can go on with. 0: its workers may go
    says     that in one sentence
    """

    name: str
    workers: dict[str, int]
    formats: tuple[int, ...] = ()
    brains: tuple[BuildBrain, ...] = ()
    needed: int = 0
    says: str = ""


class Versions(Wire):
    """All builds that have workers, or turns.

    ramp       where new turns begin, in words; empty: where a coordinator is free
    untold     turns that say no build: neither BRAINQ_BUILD nor a pin was set up where they began
    is_whole   False: there are more turns than were looked at
    """

    builds: tuple[Build, ...]
    ramp: str = ""
    untold: int = 0
    is_whole: bool = True


def read_versions(client: Client) -> Versions:
    """The builds that have workers or turns, and which of them may go; of the home cell, where there are several."""
    state = wiring_of(client).state.builds
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
    turns = "1 turn" if needed == 1 else f"{needed} turns"
    if needed and not workers:
        return f"{turns} wait for build {name}: start its workers, or brainq versions release {name} --to BUILD"
    if needed:
        return f"{turns} need build {name}: its workers stay"
    if not workers:
        return f"build {name} has no workers, and no turn needs it"
    if is_only:
        return f"build {name} is the only one"
    return f"build {name} is empty: its workers may go"


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


def release_build(client: Client, build: str, to: str) -> tuple[str, ...]:
    """What is pinned to the brains of `build` goes on with those of the same name of the build `to`: their names.

    Raises NotFound for a build that never had workers, InvalidInput where `to` has none, or lacks a brain.
    """
    state = wiring_of(client).state.builds
    old, new = state.known().get(build), _running(state.workers(), to)
    if old is None:
        raise NotFound(f"no build {build!r} had workers in the last 90 days; brainq versions lists those there are")
    if lacking := sorted(set(old) - set(new)):
        raise InvalidInput("to", f"build {to!r} has no brain {lacking[0]!r}, to which turns of {build!r} may be pinned")
    moved = {digest: new[name] for name, digest in old.items() if digest != new[name]}
    if not moved:
        raise InvalidInput("to", f"builds {build!r} and {to!r} have the same brains: there is nothing to release")
    state.release(moved)
    return tuple(name for name, digest in old.items() if digest in moved)


def set_ramp(client: Client, to: str, share: float, other: str | None) -> str:
    """Of all sessions `share` per cent begin their turns on the build `to`; 0 ends the ramp. What holds then.

    other   the build of the others; None: the only other one that has workers. Raises InvalidInput.
    """
    if not 0 <= share <= 100:
        raise InvalidInput("share", f"{share:g} % cannot be a share; use 0 to 100")
    if share == 0:
        wiring_of(client).state.builds.set_ramp(None)
        return ""
    state = wiring_of(client).state.builds
    workers = state.workers()
    _running(workers, to)
    others = sorted({worker.build for worker in workers} - {to})
    if other is None and len(others) != 1:
        found = f"there are {', '.join(others)}" if others else "there is none"
        raise InvalidInput("from", f"name the build that the other sessions begin on: {found} beside {to!r}")
    ramp = Ramp(to, other or others[0], round(share * PARTS / 100))
    _running(workers, ramp.other)
    state.set_ramp(ramp)
    return _ramp_text(ramp)


def _running(workers: Sequence[BuildWorker], build: str) -> dict[str, str]:
    """The digests of its brains. Raises InvalidInput for a build without workers."""
    its = [worker for worker in workers if worker.build == build]
    if not its:
        names = ", ".join(sorted({worker.build for worker in workers})) or "there are none"
        raise InvalidInput("build", f"no worker of build {build!r} is alive; the builds with workers: {names}")
    return {name: digest for worker in its for name, (digest, _) in worker.brains.items()}
