"""The client's verbs about builds: which builds run, and how turns move from one to another."""

from __future__ import annotations

from typing import TypeVar

from brainq.client.connection import Connection
from brainq.contracts.act import NewAct
from brainq.contracts.answers import Answers
from brainq.contracts.build import BuildChange, BuildWorker, Versions
from brainq.errors import CellUnreachable, InvalidInput
from brainq.fleet.builds import ramp_of, ramp_text, read_versions, released_digests, running

T = TypeVar("T")


class VersionVerbs:
    """The part of `Client` that lists builds and moves turns between them, in every cell."""

    _connection: Connection

    def versions(self) -> Versions:
        """List the builds that have workers or turns, and whether each can be shut down."""
        return self._connection.read_all(read_versions)

    def ramp_build(self, build: str, share: float, other: str | None = None) -> BuildChange:
        """Begin the turns of `share` per cent of all sessions on this build. 0 ends the ramp.

        other: the build of the other sessions. None means the only other build that has workers.

        Raises InvalidInput.
        """
        if not 0 <= share <= 100:
            raise InvalidInput("share", f"{share:g} % is not a valid share; use 0 to 100")
        ramp = ramp_of(self._workers(), build, share, other) if share else None
        done = self._connection.do_in_all(
            lambda cells: _answered(cells.ask(lambda wiring: wiring.state.builds.set_ramp(ramp))), NewAct("ramp", build)
        )
        ended = (
            "the ramp has ended: every session begins where a coordinator is free, also on build "
            f"{build} while it has workers; to keep turns off it, ramp the other build to 100 %"
        )
        return self._changed(done, ramp_text(ramp) if ramp else ended)

    def release_build(self, build: str, to: str) -> BuildChange:
        """Let turns that are pinned to the brains of `build` continue on the brains with the same names in the build
        `to`.

        Raises NotFound if `build` never had workers, and InvalidInput if `to` has no workers or lacks a brain.
        """
        old: dict[str, str] = {}
        for builds in _answered(self._connection.ask(lambda wiring: wiring.state.builds.known())).values:
            old.update(builds.get(build, {}))
        moved = released_digests(build, old, to, running(self._workers(), to))
        done = self._connection.do_in_all(
            lambda cells: _answered(cells.ask(lambda wiring: wiring.state.builds.release(moved))),
            NewAct("release build", f"{build} {to}"),
        )
        brains = tuple(name for name, digest in old.items() if digest in moved)
        says = f"turns pinned to {', '.join(brains)} of build {build} will continue on build {to}"
        return self._changed(done, says, brains)

    def _workers(self) -> tuple[BuildWorker, ...]:
        asked = _answered(self._connection.ask(lambda wiring: wiring.state.builds.workers()))
        return tuple(worker for workers in asked.values for worker in workers)

    def _changed(self, done: Answers[None], says: str, brains: tuple[str, ...] = ()) -> BuildChange:
        cells = tuple(name for name, _ in done.answers) if len(self._connection.cells.names) > 1 else ()
        return BuildChange(says=says, brains=brains, cells=cells, cells_away=done.away)


def _answered(asked: Answers[T]) -> Answers[T]:
    if not asked.answers:
        raise CellUnreachable(asked.away[0], "nor does any other cell")
    return asked
