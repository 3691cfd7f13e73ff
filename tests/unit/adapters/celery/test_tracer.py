"""The lean tracer says what Celery's says, and leaves to Celery's whatever it does not know."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from celery import Celery, signals
from celery.app import trace
from celery.app.trace import build_tracer

from brainq.adapters.celery.app import make_app
from brainq.adapters.celery.celery57.task_execution import lean_tracer
from brainq.runtime.settings.deployment import Settings
from tests.integration.adapters.celery.worker import settings_for

REQUEST = {"id": "t1", "shadow": "brainq.call.run:look", "argsrepr": "(hidden)", "kwargsrepr": "{}", "hostname": "h"}


@pytest.fixture
def app() -> Celery:
    settings: Settings = settings_for("redis://127.0.0.1:1/0")
    return make_app(settings)


def task(app: Any, work: Callable[..., object], **options: Any) -> Any:
    work.__name__ = "work"  # Celery writes a function of that name, and none can be called <lambda>
    app.task(work, name="brainq.work", ignore_result=True, **options)
    app.finalize()
    return app.tasks["brainq.work"]


def full(app: Celery, of: Any) -> Any:
    return build_tracer("brainq.work", of, app=app)


def traced(tracer: Any, *args: object) -> Any:
    return tracer("t1", list(args), {}, dict(REQUEST))


@pytest.fixture
def optimized(app: Any) -> Iterator[None]:
    """What a worker does to Celery as it starts."""
    trace.setup_worker_optimizations(app, "h")
    yield
    trace.reset_worker_optimizations(app)


@pytest.mark.usefixtures("optimized")
def test_a_workers_tasks_are_traced_by_it(app: Celery) -> None:
    work = task(app, lambda: None)
    stock = full(app, work)
    assert lean_tracer(work, stock) is not stock


@pytest.mark.parametrize("returned", [None, "x" * 5000, {"a": [1]}])
def test_a_success_is_told_as_celery_tells_it(app: Celery, returned: object) -> None:
    work = task(app, lambda: returned)
    stock = full(app, work)
    ours, theirs = traced(lean_tracer(work, stock)), traced(stock)
    assert (ours.retval, ours.info, ours.retstr) == (theirs.retval, theirs.info, theirs.retstr)
    assert 0 <= ours.runtime < 60


def test_a_failure_is_told_as_celery_tells_it_and_signalled(app: Celery, caplog: pytest.LogCaptureFixture) -> None:
    def work(secret: str) -> None:
        raise KeyError("k")

    caplog.set_level(logging.INFO, "celery.app.trace")
    failing = task(app, work, throws=(KeyError,))
    stock = full(app, failing)
    heard: list[dict[str, Any]] = []

    def note(**told: Any) -> None:
        heard.append(told)

    signals.task_failure.connect(note)
    ours, theirs = traced(lean_tracer(failing, stock), "canary"), traced(stock, "canary")
    assert ours.info.state == theirs.info.state == "FAILURE"
    assert repr(ours.retval.exception) == repr(theirs.retval.exception) == "KeyError('k')"
    assert [(told["task_id"], told["args"], repr(told["exception"])) for told in heard] == [
        ("t1", ["canary"], "KeyError('k')")
    ] * 2
    assert [record.getMessage() for record in caplog.records] == [
        "Task brainq.call.run:look[t1] raised expected: KeyError('k')"
    ] * 2
    assert "canary" not in caplog.text


def test_a_log_line_names_what_ran_and_hides_what_is_hidden(app: Celery, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "celery.app.trace")

    def look(secret: str) -> None: ...

    work = task(app, look)
    traced(lean_tracer(work, full(app, work)), "canary")
    (record,) = caplog.records
    assert record.getMessage().startswith("Task brainq.call.run:look[t1] succeeded in ")
    assert record.__dict__["data"]["args"] == "(hidden)"


@pytest.mark.parametrize("name", ["task_prerun", "task_postrun", "task_success"])
def test_somebody_who_listens_to_tasks_has_celerys_tracer(app: Celery, name: str) -> None:
    signal: Any = getattr(signals, name)
    work = task(app, lambda: None)
    tracer = lean_tracer(work, full(app, work))
    heard: list[str] = []

    def note(sender: Any, **_: Any) -> None:
        heard.append(sender.name)

    traced(tracer)
    signal.connect(note)  # also after the worker has started
    traced(tracer)
    assert heard == ["brainq.work"]


def test_a_task_with_handlers_of_its_own_has_celerys_tracer(app: Any) -> None:
    class Own(app.Task):  # type: ignore[misc]
        def after_return(self, *args: object) -> None: ...

    work = task(app, lambda: None, base=Own)
    stock = full(app, work)
    assert lean_tracer(work, stock) is stock
