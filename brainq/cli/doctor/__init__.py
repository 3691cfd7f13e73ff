"""The checks of `brainq doctor`, one group a file."""

from __future__ import annotations

from collections.abc import Iterator

from brainq.cli.doctor import services
from brainq.cli.doctor.setup import check_brains, check_libraries, check_traces
from brainq.cli.doctor.upgrade import check_upgrade
from brainq.devserver.redis_server import known_redis
from brainq.errors import SetupError
from brainq.settings.deployment import load_settings
from brainq.wiring import preflight
from brainq.wiring.preflight import Check, fail


def run_upgrade_checks() -> Iterator[Check]:
    """What is in the way of this build, beside the one that runs. Raises nothing."""
    try:
        settings = load_settings()
    except SetupError as error:
        yield fail("settings", "; ".join(str(error).splitlines()), "correct these environment variables")
        return
    yield from check_upgrade(settings)


def run_checks() -> Iterator[Check]:
    """Every check in turn; one that cannot be made because another failed is left out. Raises nothing."""
    yield from check_libraries()
    try:
        settings = load_settings()
    except SetupError as error:
        yield fail("settings", "; ".join(str(error).splitlines()), "correct these environment variables")
        return
    yield from check_brains(settings)
    yield check_traces()
    if len(settings.all_cells()) > 1:
        from brainq.cli.doctor.cells import check_cells

        yield from check_cells(settings)
        return
    if (yield from services.check_sql(settings)):
        yield from services.check_content_keys(settings)
        yield from services.check_webhooks(settings)
    try:
        url = known_redis(settings)
    except SetupError as error:
        yield fail("redis", str(error).partition(". ")[0], str(error).partition(". ")[2])
        return
    if settings.broker_url is not None:
        yield preflight.check_broker(settings)
    if (yield from services.check_redis(url)):
        yield services.check_sweeper(settings, url)
        yield services.check_presence(settings, url)
        yield from services.check_broker(settings, url)
