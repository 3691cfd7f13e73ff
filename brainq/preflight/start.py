"""All checks at once, before a worker starts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from brainq.brain_loading import load_brains
from brainq.brains import Brains
from brainq.errors import BrainNotLoaded, SetupError
from brainq.preflight.check import Check, fail
from brainq.preflight.model import check_model
from brainq.preflight.redis import check_broker, check_redis
from brainq.preflight.room import check_room
from brainq.preflight.sql import check_sql
from brainq.settings import Settings

LIMIT_S = 2.5


def require_start(settings: Settings, *, redis_url: str | None, writes: Path | None = None) -> Brains:
    """The brains, once all that a worker needs was seen to be there.

    redis_url   None: a server of our own will be started
    writes      a directory that files will be written to
    Raises SetupError with a line for each fault and its remedy, after at most 2.5 s and the import of the brains;
    BrainNotLoaded when the brains are among them.
    """
    services = _Looks(_services(settings, redis_url, writes))
    failed: SetupError | None = None
    brains: Brains | None = None
    try:
        brains = load_brains(settings.app)
    except SetupError as error:
        failed = error
    found = services.found()
    if brains is not None:
        models = [model for brain in brains for model in (brain.model, brain.auxiliary_model)]
        found = [*(check_model(model) for model in models if model is not None), *found]
    said = [*([str(failed)] if failed else []), *_sentences(found)]
    if isinstance(failed, BrainNotLoaded):
        raise BrainNotLoaded("\n".join(said), failed.shown_traceback) from failed
    if said:
        raise SetupError("\n".join(said)) from failed
    assert brains is not None
    return brains


def _services(
    settings: Settings, redis_url: str | None, writes: Path | None
) -> dict[str, Callable[[], Check]]:
    looks: dict[str, Callable[[], Check]] = {"sql": lambda: check_sql(settings.sql_url.get_secret_value())}
    if redis_url is not None:
        looks["redis"] = lambda: check_redis(redis_url)
    if settings.broker_url is not None:
        looks["broker"] = lambda: check_broker(settings)
    if writes is not None:
        looks["disk"] = lambda: check_room(writes)
    return looks


def _sentences(found: list[Check]) -> list[str]:
    """A line for each fault; one that two looks have met is said once."""
    faults: dict[str, str] = {}
    for check in found:
        if check.level == "FAIL":
            faults.setdefault(f"{check.said}; {check.remedy}", check.name)
    return [f"{name}: {fault}" for fault, name in faults.items()]


class _Looks:
    """Looks that go on side by side. One that hangs in a lookup or a connect is left to itself."""

    def __init__(self, looks: Mapping[str, Callable[[], Check]]) -> None:
        self._until = time.monotonic() + LIMIT_S
        self._checks: dict[str, Check] = {}
        self._threads = {
            name: threading.Thread(target=self._look, args=(name, look), name=f"look-{name}", daemon=True)
            for name, look in looks.items()
        }
        for thread in self._threads.values():
            thread.start()

    def found(self) -> list[Check]:
        for thread in self._threads.values():
            thread.join(max(0.0, self._until - time.monotonic()))
        late = {
            name: fail(name, f"no answer within {LIMIT_S:g} s", f"start it, or correct {_VARIABLES[name]}")
            for name in self._threads
        }
        return [self._checks.get(name, late[name]) for name in self._threads]

    def _look(self, name: str, look: Callable[[], Check]) -> None:
        try:
            self._checks[name] = look()
        except Exception as error:
            self._checks[name] = fail(
                name,
                f"{type(error).__name__}: {error}",
                f"look at {_VARIABLES[name]}, or run `brainq doctor`",
            )


_VARIABLES = {
    "sql": "BRAINQ_SQL_URL",
    "redis": "BRAINQ_REDIS_URL",
    "broker": "BRAINQ_BROKER_URL",
    "disk": "BRAINQ_DATA_DIR",
}
