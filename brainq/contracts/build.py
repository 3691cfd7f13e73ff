"""Builds: the code and the brains of a worker, and what it declares of both when it claims work."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from brainq.contracts.base import Wire

STATE_FORMAT = 1
"""The format of a turn's state in Redis, as `lua/lib/state_format.lua` writes it. It grows with each change that an
older build would misread."""

FORMATS_READ = (1,)
"""The formats of turns that this build can continue."""

Pin = Literal["turn", "session"]
"""How long a turn's brain stays pinned to the one that began it: for the turn, or for all turns of its session."""

UNSERVED_S = 60.0
"""How long a session's pinned brain may be without a worker, in seconds. Then new turns of the session are refused."""


@dataclass(frozen=True, slots=True)
class DeclaredBrain:
    """A brain of a worker: its name, the digest of its declaration, and its pin. The pin is "" if there is none."""

    name: str
    digest: str
    pin: str = ""


@dataclass(frozen=True, slots=True)
class Ramp:
    """A gradual change to a new build.

    Of each 10,000 sessions, `share` begin their turns on the build `to`, the rest on `other`.
    """

    to: str
    other: str
    share: int


@dataclass(eq=False)
class WorkerBuild:
    """The build and the brains of a process that claims work.

    name: the name of its build.
    brains: its brains, with the default one first.
    is_distinct: False if neither BRAINQ_BUILD nor a pin is configured here. Turns then do not record their build.
    ramp: the ramp as it was last read. Claims use it without reading it again.
    """

    name: str
    brains: tuple[DeclaredBrain, ...]
    is_distinct: bool = False
    ramp: Ramp | None = None

    @classmethod
    def of_names(cls, names: Iterable[str] = ()) -> WorkerBuild:
        """Return a build whose brains have these names and no digest."""
        return cls("", tuple(DeclaredBrain(name, "") for name in names))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words by which turns find this build: the names of its brains, and `#DIGEST` for each digest."""
        return (
            *(brain.name for brain in self.brains),
            *(f"#{brain.digest}" for brain in self.brains if brain.digest),
        )

    @property
    def declared(self) -> str:
        """The argument that `turn_claim` gets, as JSON. Empty if builds are not distinguished."""
        if not self.is_distinct:
            return ""
        if self._declared is None or self._declared[0] is not self.ramp:
            self._declared = self.ramp, self._declared_json()
        return self._declared[1]

    def __post_init__(self) -> None:
        self._declared: tuple[Ramp | None, str] | None = None

    def _declared_json(self) -> str:
        by_name = {brain.name: {"digest": brain.digest, "pin": brain.pin} for brain in self.brains}
        fields: dict[str, object] = {"build": self.name, "brains": {"": by_name[self.brains[0].name], **by_name}}
        if self.ramp is not None:
            fields["ramp"] = [self.ramp.to, self.ramp.other, self.ramp.share]
        return json.dumps(fields, separators=(",", ":"))

    @property
    def queues(self) -> tuple[str, ...]:
        """The suffixes, after the `@`, of the queues that only workers of this build or format read."""
        own = (self.name,) if self.is_distinct else ()
        return (*own, *(f"format-{number}" for number in FORMATS_READ if number > 1))


@dataclass(frozen=True, slots=True)
class BuildWorker:
    """A worker with the build that it has reported.

    name: `POOL@PROCESS`, which is unique.
    formats: the formats of a turn's state that it reads.
    brains: the digest and the pin of each brain, by name.
    lacks: why it cannot work, or is not ready. Empty if it is ready.
    """

    name: str
    pool: str
    build: str
    formats: tuple[int, ...]
    brains: dict[str, tuple[str, str]]
    lacks: str = ""

    @classmethod
    def of(cls, name: str, pool: str, build: WorkerBuild, lacks: str = "") -> BuildWorker:
        brains = {brain.name: (brain.digest, brain.pin) for brain in build.brains}
        return cls(name, pool, build.name, FORMATS_READ, brains, lacks)

    def to_json(self) -> str:
        return json.dumps({field: getattr(self, field) for field in self.__slots__}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> BuildWorker:
        """Read the text of `to_json`. Unknown fields are ignored, because a later build may add some."""
        fields = json.loads(text)
        brains = {name: (str(two[0]), str(two[1])) for name, two in fields["brains"].items()}
        formats = tuple(map(int, fields["formats"]))
        return cls(fields["name"], fields["pool"], fields["build"], formats, brains, fields.get("lacks", ""))


def brains_behind(here: WorkerBuild, workers: Iterable[BuildWorker]) -> list[str]:
    """Return the names of brains that are declared here, but by no coordinator, in this form. Pure.

    The code of such a brain was changed since the workers were started, here or there. Brains that no coordinator has
    are left out.
    """
    coordinators = [worker.brains for worker in workers if worker.pool == "coordinator"]
    behind: list[str] = []
    for brain in here.brains:
        digests = {brains[brain.name][0] for brains in coordinators if brain.name in brains}
        if digests and brain.digest and brain.digest not in digests:
            behind.append(brain.name)
    return behind


@dataclass(frozen=True, slots=True)
class BuildTurn:
    """A turn that has not ended, and the build that advanced it last or that it is pinned to.

    build: the name of the build, or "" if builds are not distinguished.
    digest: the digest of the turn's brain, as that build declares it.
    """

    session_id: str
    turn_id: str
    state: str
    brain: str
    build: str
    digest: str
    is_pinned: bool
    format: int


class BuildBrain(Wire):
    """A brain of a build, and how many of its turns have not ended.

    digest: the digest of the brain's declaration.
    live, parked, queued, closing: turns that are pinned to it, or that the build continued last.
    pinned: how many of these are pinned.
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

    needed: turns that no other build's workers can continue. Its workers may stop at 0.
    needed_in: the same by cell if there are several, for each cell that has the build. The workers of one cell
        continue the turns of that cell only.
    says: whether its workers may stop, in one sentence.
    """

    name: str
    workers: dict[str, int]
    formats: tuple[int, ...] = ()
    brains: tuple[BuildBrain, ...] = ()
    needed: int = 0
    needed_in: dict[str, int] = {}
    says: str = ""


class Versions(Wire):
    """All builds that have workers or turns, in all cells.

    ramp: which build new turns begin on, in words. Empty without a ramp.
    untold: the number of turns without a build, because they began when neither BRAINQ_BUILD nor a pin was configured.
    is_whole: False if there are more turns than were read.
    cells_away: cells that did not answer. Their turns are missing, and no build's workers may stop.
    """

    builds: tuple[Build, ...]
    ramp: str = ""
    untold: int = 0
    is_whole: bool = True
    cells_away: tuple[str, ...] = ()


class BuildChange(Wire):
    """The result of a ramp or a release.

    says: what holds from now on.
    brains: the brains that were released.
    cells: the cells that have the change, if there are several.
    cells_away: cells that did not answer. Repeat the change once they do; it changes nothing in the others.
    """

    says: str
    brains: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    cells_away: tuple[str, ...] = ()
