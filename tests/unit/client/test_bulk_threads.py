"""A bulk counts as running only while a thread runs it, and its report ends whatever ends it."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from brainq.app.wiring.cells import Cells
from brainq.client.bulk import MAX_AT_ONCE, BulkThreads
from brainq.client.bulk_run import BulkRun, first_report
from brainq.client.connection import Connection
from brainq.contracts.bulk import BulkPlan, BulkReport
from brainq.errors import AlreadyRuns, Unreachable
from brainq.runtime.observe import threads
from tests.support.refused_threads import REFUSED, RefusedThreads
from tests.support.wait import wait_until


class Run:
    """A bulk that lasts until it is to stop, or ends as `end` says."""

    def __init__(self, end: BaseException | None = None, begins: bool = True) -> None:
        self.end = end
        self.begins = begins
        self.ran = threading.Event()
        self.stopping = threading.Event()

    def begin(self) -> None:
        if not self.begins:
            raise Unreachable("Redis is away")

    def run(self) -> None:
        self.ran.set()
        if self.end is not None:
            raise self.end
        self.stopping.wait(60)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "REFUSED_PAUSES_S", ())


def start(bulks: BulkThreads, run: Run) -> None:
    bulks.start(cast("BulkRun", run))


def test_refused_threads_take_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    bulks, run = BulkThreads(), Run()
    RefusedThreads(monkeypatch, "brainq-bulk-run", MAX_AT_ONCE)
    for _ in range(MAX_AT_ONCE):
        with pytest.raises(Unreachable, match=REFUSED):
            start(bulks, Run())
    start(bulks, run)
    assert run.ran.wait(60)
    bulks.close()


@pytest.mark.parametrize(
    "ends", [Run(SystemExit()), Run(MemoryError()), Run(begins=False)], ids=["exit", "memory", "away"]
)
def test_whatever_ends_one_its_place_is_free(ends: Run) -> None:
    bulks = BulkThreads()
    for _ in range(MAX_AT_ONCE + 1):
        try:
            start(bulks, ends)
        except Unreachable:
            assert not ends.begins
    wait_until(lambda: not bulks._running, "all have left")  # pyright: ignore[reportPrivateUsage]


def test_no_more_than_four_run() -> None:
    bulks = BulkThreads()
    for _ in range(MAX_AT_ONCE):
        start(bulks, Run())
    with pytest.raises(AlreadyRuns):
        start(bulks, Run())
    bulks.close()


def test_one_whose_saver_is_refused_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[BulkReport] = []

    def save(report: BulkReport) -> bool:
        kept.append(report)
        return False

    wiring: Any = SimpleNamespace(state=SimpleNamespace(bulks=SimpleNamespace(save=save)))
    client: Any = SimpleNamespace(_connection=Connection(Cells(wiring)))
    RefusedThreads(monkeypatch, "brainq-bulk-saver", 1)
    plan = BulkPlan(verb="cancel", where="", dry_run=False, rate=1.0, most=1, reason="", by="ann")
    run = BulkRun(client=client, report=first_report(plan, None))
    with pytest.raises(RuntimeError, match=REFUSED):
        run.run()
    assert [(report.state, report.error, report.ended_at is None) for report in kept] == [
        ("failed", "RuntimeError", False)
    ]
