"""Fixtures every test may use: a real Redis, started once a test process and emptied between tests."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Generator, Iterator
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings

from tests.support.cluster import RedisCluster
from tests.support.server import RedisServer

# A machine that is slow just now makes no test wrong.
settings.register_profile("anywhere", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("anywhere")

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

# Files that take long begin first, so that none is left to one worker at the end. Those that share worlds stand
# together: a world ends with the last of its package, because its workers never rest.
LONG = (
    "tests/lua/test_model.py",
    "tests/simulation/",
    "tests/acceptance/promises/",
    "tests/acceptance/people/",
    "tests/acceptance/page/",
    "tests/acceptance/",
)


# Where this is set nothing may be skipped: what cannot run on a machine is left out by `needs`, or is `full`.
NO_SKIPS = "BRAINQ_NO_SKIPS"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    missing = [item for item in items if not all(mark.args[0] for mark in item.iter_markers("needs") if mark.args)]
    if missing:
        config.hook.pytest_deselected(items=missing)
        items[:] = [item for item in items if item not in missing]
    items.sort(key=lambda item: next((i for i, name in enumerate(LONG) if item.nodeid.startswith(name)), len(LONG)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _unskipped((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _unskipped((yield))


def _unskipped(report: Report) -> Report:
    if os.environ.get(NO_SKIPS) and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{NO_SKIPS} is set, and this was skipped: {report.longrepr}"
    return report


@pytest.fixture(autouse=True)
def logs_as_they_were() -> None:
    """What is run in this process may set logging up for good, its own or a library's: no later test may notice."""
    logging.disable(logging.NOTSET)
    logging.getLogger().setLevel(logging.WARNING)
    for name in [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "brainq"]:
        ours = logging.getLogger(name)
        ours.handlers, ours.propagate, ours.disabled = [], True, False
        ours.setLevel(logging.NOTSET)


@pytest.fixture(autouse=True)
def modules_as_they_were(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A module that a test wrote ends with it: another test's `shop.py` is another shop."""
    before = set(sys.modules)
    yield
    written = str(tmp_path_factory.getbasetemp())
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(written):
            del sys.modules[name]


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """One server a test process; use `redis_url` for one that is empty."""
    server = RedisServer().start()
    yield server
    server.stop()


@pytest.fixture
def redis_url(redis_server: RedisServer) -> str:
    """The url of a server without a key in it."""
    redis_server.flushall()
    return redis_server.url


@pytest.fixture
def no_keys_left(redis_server: RedisServer, redis_url: str) -> Iterator[None]:
    """Fails a test that leaves a key behind (`pytestmark = pytest.mark.usefixtures("no_keys_left")`)."""
    yield
    left = redis_server.keys()
    assert not left, f"keys were left behind: {left}"


@pytest.fixture(scope="session")
def cluster() -> Iterator[RedisCluster]:
    """One Redis Cluster of three primaries and three replicas a test process; use `whole` for one that is empty."""
    with RedisCluster() as made:
        yield made


@pytest.fixture
def whole(cluster: RedisCluster) -> Iterator[RedisCluster]:
    """The cluster, all of whose nodes run, and which holds no key."""
    yield cluster
    cluster.mend()
    for port in cluster.ports:
        if cluster.ask(port, "ROLE")[0] == "master":
            cluster.ask(port, "FLUSHALL")
