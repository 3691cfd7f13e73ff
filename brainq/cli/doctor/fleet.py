"""Check the running fleet from outside, independently of what workers report about themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from brainq.adapters.redis.connection import make_client
from brainq.adapters.redis.fleet import RedisWorkers
from brainq.adapters.redis.keys import Keys
from brainq.app.wiring.preflight import Check, ok, warn
from brainq.client.connection import cells_of
from brainq.client.operator import Operator
from brainq.fleet.snapshot import read_redis_fleet
from brainq.fleet.troubles import RESTART
from brainq.runtime.settings.deployment import Settings


def check_troubles(settings: Settings) -> Iterator[Check]:
    """Yield each problem of the fleet, as `brainq fleet` shows it. SQL is not opened, because that could create it."""
    with Operator(settings) as operator:
        troubles = read_redis_fleet(cells_of(operator.client).home).troubles
    for trouble in troubles:
        yield warn("fleet", trouble.text, trouble.remedy)
    if not troubles:
        yield ok("fleet", "every queue has workers, pools have free threads, and turns are checked in time")


def check_answers(settings: Settings, url: str, answering: Iterable[str]) -> Iterator[Check]:
    """Yield the differences between workers with a heartbeat and workers that answer Celery.

    answering   names of the nodes that answer, such as `serial@host`
    """
    with make_client(url) as client:
        announced = {worker.name for worker in RedisWorkers(client, Keys(settings.key_prefix)).alive()}
    yield from compare_names(announced, set(answering))


def compare_names(announced: set[str], answering: set[str]) -> Iterator[Check]:
    """Yield a warning for each worker that is in only one of the two sets."""
    for name in sorted(announced - answering):
        yield warn(
            "worker", f"{name} has a heartbeat but does not answer Celery's ping, so it is stuck or busy", RESTART
        )
    for name in sorted(answering - announced):
        yield warn(
            "worker", f"{name} answers Celery's ping but has no heartbeat, so `brainq fleet` does not list it", RESTART
        )
