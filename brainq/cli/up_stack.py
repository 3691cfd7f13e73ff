"""What `brainq up` does: a Redis if there is none, then honcho."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from brainq.brain import load_brain
from brainq.cli.output import say
from brainq.cli.reach import without_password
from brainq.cli.worker import POOLS
from brainq.devserver.resolve import resolve_redis
from brainq.errors import SetupError
from brainq.settings import load_settings

STOPPED = (-signal.SIGTERM, 143)


def run_up(procfile: Path, processes: list[str]) -> int:
    """Run honcho until it ends; its exit code, or 0 when it was told to stop.

    Raises SetupError when the Procfile, the brain or a Redis is missing.
    """
    if not procfile.exists():
        pools = "\n".join(f"  {pool}: brainq worker {pool}" for pool in POOLS)
        raise SetupError(
            f"there is no {procfile.absolute()}; write one, or name it with -f, or use `brainq dev`. "
            f"These lines are enough:\n{pools}"
        )
    settings = load_settings()
    load_brain(settings.app)
    with resolve_redis(settings) as url:
        say(f"redis {without_password(url)}", style="dim")
        # The Procfile says `celery` and `brainq`: they are those of this Python.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        environment = {**os.environ, "PATH": path, "BRAINQ_REDIS_URL": url}
        return _run([sys.executable, "-m", "honcho", "-f", str(procfile), "start", *processes], environment)


def _run(command: list[str], environment: dict[str, str]) -> int:
    # In a session of its own, so that Ctrl+C reaches honcho once, from here, and Redis goes last.
    honcho = subprocess.Popen(command, env=environment, start_new_session=True)

    def stop(_number: int, _frame: object) -> None:
        honcho.terminate()

    before = {
        number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        code = honcho.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0 if code in STOPPED else code
