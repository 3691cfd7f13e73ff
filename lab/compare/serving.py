"""How a system is driven: it says `ready`, then runs as many turns at once as each line of its input says.

It answers `done` when the last step of the last turn has ended, and then, when nothing is measured any more, with a
line of JSON, a list of turns.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

READY, DONE = "ready", "done"


@dataclass(frozen=True)
class Ended:
    """A turn that has run to the end of its last step; `latency_s` is from submit to its `result` step."""

    latency_s: float
    text: str
    calls: int
    final_steps: int


@dataclass(frozen=True)
class Options:
    """directory   where the system keeps what it stores; empty at the start
    events      brainq's task events are on
    """

    directory: Path
    events: bool


def options() -> Options:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--events", action="store_true")
    given = parser.parse_args()
    return Options(given.directory.absolute(), given.events)


def serve(run: Callable[[int], Iterable[Ended]]) -> None:
    """Serve until the input ends. The result of `run` is read after the measurement."""
    for count in _asked():
        _answer(run(count))


async def serve_async(run: Callable[[int], Awaitable[Iterable[Ended]]]) -> None:
    """Serve as `serve` does, on an event loop, which stands still between requests."""
    for count in _asked():
        _answer(await run(count))


def _asked() -> Iterator[int]:
    print(READY, flush=True)
    for line in sys.stdin:
        yield int(line)


def _answer(turns: Iterable[Ended]) -> None:
    print(DONE, flush=True)
    print(json.dumps([asdict(turn) for turn in turns]), flush=True)
