"""The parts that all schedules of one server share, and the run of a schedule by its seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic import SecretStr

from brainq.runtime.settings.deployment import Settings
from tests.support.model.bells import Bells
from tests.support.model.client import ModelClient
from tests.support.model.process import State
from tests.support.model.rules import BrokenRule
from tests.support.model.schedule import Schedule
from tests.support.model.scripts import WatchedScripts
from tests.support.model.state import LOOK

PLAIN = Settings(redis_url=None)
CLUSTER = Settings(redis_url=SecretStr("redis+cluster://127.0.0.1:1/"))
"""The settings of a plain Redis, and of a cluster: they say which prefix keys have."""


class Bench:
    """A runner of schedules on the server of a unix socket. Mutants are loaded through `scripts`."""

    def __init__(self, socket_path: str, settings: Settings = PLAIN) -> None:
        self._at: Schedule | None = None
        self._client = ModelClient(socket_path, self._give_way)
        look = LOOK.replace(f"'{PLAIN.key_prefix}", f"'{settings.key_prefix}")
        self._look_sha = cast(str, self._client.many([("SCRIPT", "LOAD", look)])[0])
        self._bells = Bells(self._client, settings)
        self.scripts = WatchedScripts(self._client, self, settings)

    def close(self) -> None:
        self._client.close()

    def run(self, seed: int) -> list[str]:
        """Run one schedule, and return its log.

        Raises AssertionError, with the log and the command to repeat it, if a rule is broken or a machine fails.
        """
        # One a schedule: it knows histories, and all schedules have the same names, and begin at the same time.
        state = State(self.scripts, self._bells.keys)
        schedule = self._at = Schedule(seed, self._client, self.scripts, state, self._bells, self._look_sha)
        try:
            schedule.run()
        except (BrokenRule, Exception) as broken:  # a machine's failure, and an assertion, are findings, too
            again = run_again(seed)
            what = f"{broken}" if isinstance(broken, BrokenRule) else f"{type(broken).__name__}: {broken}"
            raise AssertionError("\n".join([what, again, *told(schedule.log), again])) from broken
        except BaseException as cut:  # by pytest's timeout, or by a person
            cut.add_note(run_again(seed))
            raise
        finally:
            self._at = None
            schedule.end()
        return told(schedule.log)

    def breaks(self, seed: int) -> bool:
        """Return whether a rule is broken in the schedule, or a machine fails."""
        try:
            self.run(seed)
        except Exception:
            return True
        return False

    # The watcher of the scripts.

    def before(self, name: str) -> str:
        self._give_way()
        return self._at.fate() if self._at else ""

    def look(self) -> list[Any]:
        assert self._at is not None
        return self._at.rules.look

    def after(self, name: str, given: Mapping[str, Any], reply: list[str], state: list[str] | None) -> None:
        if self._at is not None:
            self._at.told(name, given, reply, state)

    def _give_way(self) -> None:
        if self._at is not None:
            self._at.tasks.give_way()


def run_again(seed: int) -> str:
    return f"again: BRAINQ_MODEL_SEED={seed} .venv/bin/pytest tests/lua/test_model.py -s -k schedule"


def told(log: list[tuple[str, ...]]) -> list[str]:
    return [f"{number:4d}  " + "  ".join(part for part in line if part) for number, line in enumerate(log, 1)]
