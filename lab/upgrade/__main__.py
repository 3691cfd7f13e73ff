"""`python -m lab.upgrade REVISION`: that revision's workers are replaced by this checkout's, under load.

Both builds serve the same Redis and SQL, and producers of both submit all the time. Workers are replaced one by one;
each new one is ready before the old one is asked to stop. `--way back` replaces this checkout's workers by that
revision's, once all that this one can do was used; `--way blue-green` has all workers of both. A file that the tools of
both builds write to shows what was done twice; a result for each turn shows what was lost. Exit code 1 when anything
was.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from brainq.app.devserver.local_fleet import POOLS, LocalFleet, LocalWorker, SpawnWorker
from brainq.app.devserver.redis_server import EmbeddedServer
from brainq.client.client import Client
from brainq.engine.brain.brains import load_brains
from brainq.runtime.settings.deployment import load_settings
from lab.checkout import check_out
from lab.upgrade import shop
from lab.upgrade.used import use_features

HERE = Path(__file__).parents[2]
WORKERS_A_POOL = 2
WRITES_A_TURN = 2
RESULT_S = 180.0


@dataclass
class Report:
    """The findings.

    `doubled` are writes that the ledger has more than once; `missing` are turns whose writes it lacks.
    """

    turns: int = 0
    endings: Counter[str] = field(default_factory=Counter[str])
    lost: list[str] = field(default_factory=list[str])
    doubled: list[str] = field(default_factory=list[str])
    missing: list[str] = field(default_factory=list[str])

    @property
    def is_right(self) -> bool:
        ended_well = self.turns > 0 and self.endings == Counter({"completed": self.turns})
        return ended_well and not (self.lost or self.doubled or self.missing)


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="bq-upgrade-") as name:
        directory = Path(name)
        build = check_out(given.revision, directory / "old")
        shutil.copy(Path(shop.__file__), directory / "shop.py")
        report = _upgrade(directory, build, given, console)
    console.print(
        f"{report.turns} turns, {dict(report.endings)}; {len(report.lost)} lost, {len(report.doubled)} writes doubled, "
        f"{len(report.missing)} missing"
    )
    for kind in ("lost", "doubled", "missing"):
        for line in getattr(report, kind)[:20]:
            console.print(f"  {kind}: {line}", style="red")
    return 0 if report.is_right else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lab.upgrade", description="Does a rolling upgrade lose or double anything?"
    )
    parser.add_argument("revision", help="the git revision whose workers are replaced")
    parser.add_argument(
        "--way",
        choices=("forward", "back", "blue-green"),
        default="forward",
        help="forward: to this checkout; back: from it to the revision; blue-green: both, then this one",
    )
    parser.add_argument("--every", type=float, default=0.15, help="seconds between two turns of each build's producer")
    parser.add_argument(
        "--seconds", type=float, default=8.0, help="of load before, and after, the workers are replaced"
    )
    return parser


def _upgrade(directory: Path, build: Path, given: argparse.Namespace, console: Console) -> Report:
    ledger = directory / "ledger"
    with EmbeddedServer(directory / "redis") as server, ExitStack() as stack:
        shared = {
            "BRAINQ_APP": "shop:brain",
            "BRAINQ_REDIS_URL": server.url,
            "BRAINQ_SQL_URL": f"sqlite:///{directory / 'shop.db'}",
            shop.LEDGER: str(ledger),
            shop.EVERY: str(given.every),
        }
        old, new = (of_build(shared, tree, directory) for tree in (build, HERE))
        counts: dict[str, int] = dict.fromkeys(POOLS, WORKERS_A_POOL)
        spawn = celery_in(directory)
        way = (("new", new), ("old", old)) if given.way == "back" else (("old", old), ("new", new))
        before, after = (
            LocalFleet(directory / f"{name}-workers", environment, workers=counts, spawn=spawn)
            for name, environment in way
        )
        stack.enter_context(before)
        stack.callback(after.stop)
        if given.way == "back":
            with _client(shared) as client:
                console.print(f"tables of this build alone: {', '.join(use_features(client))}")
        told = [
            stack.enter_context(_producer(directory, build_name, environment))
            for build_name, environment in (("old", old), ("new", new))
        ]
        time.sleep(given.seconds)
        if given.way == "blue-green":
            after.start()
            console.print("all workers of both builds")
            time.sleep(given.seconds)
        for theirs, ours in zip(before.workers, after.workers, strict=True):
            replace_worker(before, theirs, ours)
            console.print(f"{theirs.name}: replaced")
        time.sleep(given.seconds)
        turns = [turn for path in told for turn in _submitted(path)]
        return _judged(shared, turns, ledger)


def celery_in(directory: Path) -> SpawnWorker:
    """Start workers as stock celery in `directory`.

    Python looks for a module there first; in this checkout each worker would be of this build.
    """

    def spawn(
        celery: Sequence[str], environment: Mapping[str, str], log: int, inherited: int
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "celery", *celery],
            env=environment,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(inherited,),
            start_new_session=True,
        )

    return spawn


def of_build(shared: Mapping[str, str], tree: Path, directory: Path) -> dict[str, str]:
    """Return an environment in which Python imports from `tree` first, and then from `directory`."""
    return {**shared, "PYTHONPATH": os.pathsep.join([str(tree), str(directory)])}


def replace_worker(before: LocalFleet, theirs: LocalWorker, ours: LocalWorker) -> None:
    """Replace a worker as a supervisor does: the new one consumes before the old one is asked to stop."""
    if not ours.is_running:
        ours.launch()
    while not ours.is_ready:
        if not ours.is_running:
            raise RuntimeError(f"the new {ours.name} worker ended:\n{ours.log_tail()}")
        time.sleep(0.05)
    before.kill(theirs, signal.SIGTERM)


@contextmanager
def _producer(directory: Path, name: str, environment: Mapping[str, str]) -> Generator[Path]:
    """Run a producer of this build that submits turns until the context ends or the file `stop-NAME` exists."""
    path = directory / f"{name}.turns"
    with path.open("wb") as out, (directory / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, str(directory / "shop.py"), name, "3600"],
            env={**os.environ, **environment},
            stdout=out,
            stderr=log,
            cwd=directory,
        )
        try:
            yield path
        finally:
            process.kill()
            process.wait()


def _submitted(path: Path) -> list[str]:
    """Stop the producer, so that its list contains each turn that it began to submit. Returns the list."""
    name = path.stem
    path.with_name(f"stop-{name}").touch()
    end, known = time.monotonic() + 60.0, -1
    while time.monotonic() < end:
        size = path.stat().st_size
        if size == known:
            break
        known = size
        time.sleep(1.0)
    return path.read_text().split()


def _client(shared: Mapping[str, str]) -> Client:
    settings = load_settings(redis_url=shared["BRAINQ_REDIS_URL"], sql_url=shared["BRAINQ_SQL_URL"])
    return Client(settings, load_brains("lab.upgrade.shop:brain"))


def _judged(shared: Mapping[str, str], turns: Sequence[str], ledger: Path) -> Report:
    report = Report(turns=len(turns))
    with _client(shared) as client:
        end = time.monotonic() + RESULT_S
        for turn in turns:
            try:
                result = client.handle(turn).result(max(1.0, end - time.monotonic()))
            except TimeoutError:
                report.lost.append(turn)
                continue
            report.endings[str(result.ending)] += 1
    written = Counter(ledger.read_text().splitlines())
    report.doubled = sorted(line for line, times in written.items() if times > 1)
    done = Counter(line.split()[1] for line in written)
    lost = set(report.lost)
    report.missing = [turn for turn in turns if turn not in lost and done[turn] != WRITES_A_TURN]
    return report


if __name__ == "__main__":
    sys.exit(main())
