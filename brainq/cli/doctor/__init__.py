"""The checks of `brainq doctor`, one group a file."""

from __future__ import annotations

from collections.abc import Iterator

from brainq.app.devserver.redis_server import known_redis
from brainq.app.wiring.preflight import Check, fail
from brainq.cli.doctor import services
from brainq.cli.doctor.guard import each_guarded
from brainq.cli.doctor.setup import check_brains, check_libraries, check_traces
from brainq.cli.doctor.upgrade import check_upgrade
from brainq.errors import SetupError
from brainq.runtime.settings.deployment import load_settings
from brainq.runtime.settings.extensions import load_extension


def run_upgrade_checks() -> Iterator[Check]:
    """Yield the obstacles to replacing the running build with this one. Raises nothing."""
    try:
        settings = load_settings()
    except SetupError as error:
        yield fail("settings", "; ".join(str(error).splitlines()), "correct these environment variables")
        return
    yield from each_guarded("upgrade", lambda: check_upgrade(settings))


def run_checks() -> Iterator[Check]:
    """Yield every check. A check is skipped if one that it depends on has failed. Raises nothing."""
    yield from each_guarded("libraries", check_libraries)
    try:
        settings = load_settings()
    except SetupError as error:
        yield fail("settings", "; ".join(str(error).splitlines()), "correct these environment variables")
        return
    yield from each_guarded("brain", lambda: check_brains(settings))
    yield from each_guarded("traces", lambda: [check_traces()])
    if len(settings.all_cells()) > 1:
        check_cells = load_extension("brainq.cells", "doctor")
        yield from each_guarded("cells", lambda: check_cells(settings))
        return
    yield from services.check_sql_and_content(settings)
    try:
        url = known_redis(settings)
    except SetupError as error:
        yield fail("redis", str(error).partition(". ")[0], str(error).partition(". ")[2])
        return
    yield from services.check_redis_and_broker(settings, url)
