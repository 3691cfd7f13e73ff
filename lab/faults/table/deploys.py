"""Workers replaced under load: by the same build, and by this one where another ran."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from brainq.app.devserver.local_fleet import LocalFleet, LocalWorker, wait_until_ready
from lab.checkout import check_out
from lab.faults import shop
from lab.faults.fault import Fault, Pace
from lab.faults.stage import THREADS, WORKERS, Stage, open_stage, own_fleet, redis_servers
from lab.upgrade.__main__ import HERE, celery_in, of_build, replace_worker

OLD_BUILD = "37f1700"
"""The oldest build from which an upgrade is promised."""


class RollingDeploy(Fault):
    name = "rolling-deploy"
    title = "all workers stopped warmly and started, one by one"

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.exit_codes: list[int | None] = []

    def inject(self, stage: Stage) -> None:
        self.exit_codes += [replace_warmly(stage, worker) for worker in stage.fleet.workers]

    def fired(self, stage: Stage) -> int:
        return self.exit_codes.count(0)


def replace_warmly(stage: Stage, worker: LocalWorker) -> int | None:
    """Restart a worker as a supervisor does. Returns the exit code of the old process."""
    if worker.is_running:
        stage.fleet.kill(worker, signal.SIGTERM)
    code = worker.exit_code
    worker.launch()
    wait_until_ready([worker])
    return code


class TwoBuilds(Fault):
    name = "two-builds"
    title = f"workers of build `{OLD_BUILD}` replaced one by one by this build's"
    kind = "old build"
    own_stage = True

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.replaced = 0

    @classmethod
    def why_not(cls) -> str:
        known = subprocess.run(["git", "cat-file", "-e", OLD_BUILD], cwd=HERE, capture_output=True, check=False)
        return "" if known.returncode == 0 else f"git does not have build {OLD_BUILD} here"

    def inject(self, stage: Stage) -> None:
        after = own_fleet(stage.directory / "new", stage.environment)
        for number, (old, new) in enumerate(zip(list(stage.fleet.workers), after.workers, strict=True)):
            replace_worker(stage.fleet, old, new)
            stage.fleet.workers[number] = new
            self.replaced += 1

    def fired(self, stage: Stage) -> int:
        """Return how many workers were replaced, if workers of both builds were seen at work."""
        builds = {line["build"] for line in stage.effects.lines()}
        return self.replaced if builds == {str(HERE), str(stage.directory / "old")} else 0


@contextmanager
def old_build_stage(directory: Path, rate: float) -> Generator[Stage]:
    """As a plain one. The old workers load the shop from a file beside them, for it imports what is public alone."""
    check_out(OLD_BUILD, directory / "old")
    shutil.copy(Path(shop.__file__), directory / "shop.py")
    with redis_servers(directory / "faults.db") as servers, open_stage(directory, rate, servers, _old_fleet) as stage:
        yield stage


def _old_fleet(directory: Path, environment: Mapping[str, str]) -> LocalFleet:
    old = of_build({**environment, "BRAINQ_APP": "shop:brain"}, directory / "old", directory)
    return LocalFleet(directory / "old-workers", old, workers=WORKERS, concurrency=THREADS, spawn=celery_in(directory))
