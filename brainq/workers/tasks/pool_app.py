"""The Celery app of a worker's pools, wired to this process's machines."""

from __future__ import annotations

import gc
import os
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from celery import Celery, signals
from celery.exceptions import CPendingDeprecationWarning

from brainq.adapters.celery import names
from brainq.adapters.celery.app import make_app
from brainq.adapters.celery.names import effects_of_queues
from brainq.adapters.celery.thread_step import thread_step
from brainq.adapters.celery.worker_health import PoolNeeds, WorkerHealth
from brainq.app.wiring import Wiring
from brainq.contracts.status import Effect
from brainq.engine.brain.brains import load_brains
from brainq.engine.brain.declared import worker_build
from brainq.engine.models.providers import warm_up_vendors
from brainq.engine.tools.ranking import require_ranking
from brainq.errors import SetupError
from brainq.runtime.observe.logs import configure_library_logs, configure_logs, logger, outlive_full_log
from brainq.runtime.observe.metrics.counters import COUNTERS
from brainq.runtime.observe.metrics.export import start_metrics
from brainq.runtime.observe.otel_setup import start_traces, stop_telemetry
from brainq.runtime.observe.threads import thread_problems
from brainq.runtime.processes.pool_threads import POOL_THREADS
from brainq.runtime.processes.resources import find_shortage, temporary_directories, writable_directories
from brainq.runtime.processes.supervised import follow_owner, mark_unready
from brainq.runtime.settings.deployment import Settings, settings_here
from brainq.runtime.settings.environment import mistyped_names
from brainq.workers.tasks.announcer import PRESENT_FOR_S, WorkerAnnouncer
from brainq.workers.tasks.register import TASKS_OF
from brainq.workers.tasks.renewal import become_keeper, renewal_request
from brainq.workers.tasks.task_events import WorkFailed

log = logger("brainq.tasks")

NEED_SQL = frozenset({"coordinator", "serial"})
WRITE_SQL = frozenset({"finalizer"})
"""The pools that are not ready without SQL, and yet consume: results go out, and steps are repeated until SQL is back.
Reads do not need it."""
RUN_TOOLS = frozenset({"parallel", "serial"})
NAME_OF_ALL = "all"


def pool_app(pools: Sequence[str], effects: str = "") -> Celery:
    """Return the Celery app whose workers serve these pools.

    The brains are loaded at once, so that a worker with a broken BRAINQ_APP fails at its start and reports it. The
    connections and threads are made when the worker is ready to consume, after any fork.

    effects: the effects that the serial pool serves, separated by commas, or "" for all. Raises SetupError if one is
        unknown.
    """
    _freeze_collector()
    settings = settings_here()
    settings.require_cell()
    become_keeper(settings)
    for name, meant in mistyped_names(os.environ):
        log.warning("no such setting", name=name, meant=meant)
    queues = queues_of(pools, effects)
    brains = load_brains(settings.app)
    for brain in brains:
        require_ranking(brain.selection, brain.tools.specs)
    _configure_logs(settings)
    app = make_app(
        settings,
        queues,
        name=f"brainq-{worker_name(pools)}",
        builds=worker_build(brains, settings.build).queues,
    )
    PoolWorker(pools, app, lambda: Wiring(settings, brains, serves=effects_of_queues(queues))).attach()
    if (renewal := renewal_request(settings)) is not None:
        steps: Any = app.steps
        steps["worker"].add(thread_step("renewal", renewal.watch))
    follow_owner()
    app.finalize()
    return app


def chosen_pools(wanted: str) -> tuple[str, ...]:
    """Return the pools that BRAINQ_POOLS names, in the order in which a turn visits them, or all if it is empty.

    Raises SetupError for an unknown pool.
    """
    given = [name.strip().lower() for name in wanted.split(",") if name.strip()]
    if unknown := sorted(set(given) - names.POOL_QUEUES.keys()):
        known = ", ".join(names.POOL_QUEUES)
        raise SetupError(f"BRAINQ_POOLS: {', '.join(unknown)} is not one of {known}; for all of them leave it unset")
    return tuple(pool for pool in names.POOL_QUEUES if pool in given or not given)


def worker_name(pools: Sequence[str]) -> str:
    """Return the name of a worker of these pools in logs, traces and metrics."""
    return NAME_OF_ALL if len(pools) == len(names.POOL_QUEUES) else "-".join(pools)


def queues_of(pools: Sequence[str], effects: str) -> tuple[str, ...]:
    """Return the queues of these pools. `effects` limits those of the serial pool.

    Raises SetupError for an unknown effect.
    """
    known = {effect.value: names.tool_queue(effect) for effect in Effect if not effect.is_read}
    wanted = [name.strip().lower() for name in effects.split(",") if name.strip()]
    if unknown := sorted(set(wanted) - known.keys()):
        raise SetupError(f"BRAINQ_EFFECTS: {', '.join(unknown)} is not one of {', '.join(known)}")
    served: dict[str, tuple[str, ...]] = {**names.POOL_QUEUES}
    if wanted:
        served["serial"] = tuple(known[name] for name in dict.fromkeys(wanted))
    return tuple(queue for pool in pools for queue in served[pool])


def _configure_logs(settings: Settings) -> None:
    json_lines = settings.log_format == "json"
    configure_logs(settings.log_level, json_lines=json_lines)

    def libraries(logger: Any = None, **_: object) -> None:
        configure_library_logs(logger.handlers, json_lines=json_lines)

    for set_up in (signals.after_setup_logger, signals.after_setup_task_logger):
        set_up.connect(libraries, weak=False)


def _freeze_collector() -> None:
    """Keep the garbage collector from examining again and again the objects that exist now, which stay for good."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def look_at_threads() -> None:
    if problems := thread_problems():
        raise SetupError("; ".join(problems))


def _collect_and_freeze() -> None:
    # Celery warns at each lost connection of a setting that make_app sets on purpose. The filter is set only now,
    # because until Celery has set up its logs, it shows every warning.
    warnings.filterwarnings("ignore", r"\s*In Celery 5\.1", CPendingDeprecationWarning)
    gc.collect()
    _freeze_collector()


def run_each(steps: Mapping[str, Callable[[], object]]) -> dict[str, Exception]:
    """Run each step, also after another has failed. Return the failures by the steps' names."""
    failures: dict[str, Exception] = {}
    for name, step in steps.items():
        try:
            step()
        except Exception as failure:
            failures[name] = failure
    return failures


def _log_failures(what: str, failures: Mapping[str, Exception]) -> None:
    for name, failure in failures.items():
        log.error(what, step=name, failure=failure)


class PoolWorker:
    """The worker of some pools: its wiring, its health, and its handlers of Celery's signals."""

    def __init__(self, pools: Sequence[str], app: Celery, make_wiring: Callable[[], Wiring]) -> None:
        self._pools = frozenset(pools)
        self._name = worker_name(pools)
        self._app = app
        self._make_wiring = make_wiring
        self._wiring: Wiring | None = None
        self._lock = threading.Lock()
        self._stop_telemetry: list[Callable[[], None]] = []
        self._steps_left: dict[str, Callable[[], object]] | None = None  # None until it consumes
        self._directories: tuple[Path, ...] = ()
        self._builds = [register(app, self.wiring) for register in dict.fromkeys(map(TASKS_OF.__getitem__, pools))]
        self._health = self._make_health()
        self._announcer = WorkerAnnouncer(
            pools, lambda: self.wiring().owner, lambda: self.wiring().state.workers, self._heartbeat
        )

    def attach(self) -> None:
        """Connect this to the worker's signals, threads and consumer."""
        signals.worker_init.connect(self._starting, weak=False)
        signals.worker_ready.connect(self._ready, weak=False)
        signals.worker_shutting_down.connect(self._drain, weak=False)
        signals.worker_shutdown.connect(self._stopped, weak=False)
        signals.task_failure.connect(self._doubt, weak=False)
        app: Any = self._app
        app.fitness = self._health
        app.steps["worker"].add(thread_step("fitness", self._health.watch))
        app.steps["worker"].add(thread_step("looks", self._health.look))

    def _make_health(self) -> WorkerHealth:
        needs: dict[str, Callable[[], object]] = {
            "the machine": self._look_at_machine,
            "its threads": look_at_threads,
            "Redis": lambda: self.wiring().look(sql=False),
        }
        sql: dict[str, Callable[[], object]] = {"SQL": lambda: self.wiring().store.require_writes()}
        wants = {
            **(sql if self._pools <= WRITE_SQL else {}),
            "its start": self._finish_start,
            "the fleet": self._look_at_fleet,
        }
        if self._pools <= NEED_SQL:
            return WorkerHealth(self._prepare, {**needs, **sql}, wants)
        some = self._pools & NEED_SQL
        return WorkerHealth(self._prepare, needs, wants, PoolNeeds(some, sql if some else {}))

    def _look_at_machine(self) -> None:
        if shortage := find_shortage(self._directories):
            raise SetupError(shortage)

    def wiring(self) -> Wiring:
        """Return the wiring of this process, which the first call makes."""
        if self._wiring is None:
            with self._lock:
                if self._wiring is None:
                    # Traces start before the wiring, which is built differently if spans are recorded.
                    self._stop_telemetry.append(start_traces(self._name))
                    self._wiring = self._make_wiring()
        return self._wiring

    def _prepare(self) -> None:
        written = [
            self.wiring().settings.data_dir.absolute(),
            *(temporary_directories() if self._pools & RUN_TOOLS else ()),
        ]
        self._directories = writable_directories(written)
        self.wiring().warm_up()
        self.wiring().state.presence.begin()
        if self.wiring().build.is_distinct:
            self.wiring().state.builds.forget_old()
        if "coordinator" in self._pools:  # the finalizer may call models, too, but no result waits for it
            from brainq.app.wiring.machines import warm_up_models

            warm_up_models(self.wiring().brains)
        for build in self._builds:
            build()

    def _heartbeat(self) -> None:
        """Renew the process's presence, flush its metrics and announce its builds. Raises the first failure, after all
        three were tried."""
        self._health.note_change()
        state = self.wiring().state
        failures = run_each(
            {
                "presence": state.presence.join,
                "metrics": lambda: state.metrics.flush(COUNTERS),
                "builds": self._announce_builds,
            }
        )
        for failure in failures.values():
            raise failure

    def _announce_builds(self) -> None:
        wiring = self.wiring()
        for pool in self._pools:
            name = f"{pool}@{wiring.owner}"
            if self._health.is_draining:
                wiring.state.builds.withdraw(name)
                continue
            words = self._build_words(pool, wiring.build.name)
            lacks = self._health.lacks_of(pool)
            wiring.state.builds.announce(name, wiring.build, pool, words, PRESENT_FOR_S, lacks)

    def _build_words(self, pool: str, build: str) -> list[str]:
        """Return the queues that the worker reads for the pool and that serve only this build, by their names in
        scripts."""
        read = cast("dict[str, object]", self._app.amqp.queues.consume_from)
        return [
            names.script_word(queue) for queue in names.POOL_QUEUES[pool] if names.build_queue(queue, build) in read
        ]

    def _starting(self, **_: object) -> None:
        outlive_full_log()
        mark_unready()  # a killed predecessor may have left the file

    def _ready(self, sender: Any = None, **_: object) -> None:
        """Run the last steps of the start. Celery hides errors of a signal's handler, so a failed step is kept and
        repeated at the next health check."""
        steps: dict[str, Callable[[], object]] = {
            "warming up the models": self._warm_up_vendors,
            "sending metrics": lambda: self._stop_telemetry.append(start_metrics(self._name)),
            "freezing the collector": _collect_and_freeze,
            "announcing the worker": lambda: self._announcer.begin(sender),
        }
        failures = run_each(steps)
        _log_failures("a step of the worker's start failed and will be tried again", failures)
        self._steps_left = {name: steps[name] for name in failures}

    def _finish_start(self) -> None:
        """Run the steps of the start that have failed so far. Raises SetupError with those that still fail."""
        if self._steps_left is None:
            raise SetupError("the worker does not consume yet")
        failures = run_each(self._steps_left)
        self._steps_left = {name: self._steps_left[name] for name in failures}
        if failures:
            raise SetupError(", ".join(f"{name} failed ({type(why).__name__})" for name, why in failures.items()))

    def _warm_up_vendors(self) -> None:
        if "coordinator" in self._pools:  # A turn may name another provider than its brain's.
            warm_up_vendors()

    def _look_at_fleet(self) -> None:
        if not self._announcer.is_heard:
            raise SetupError("its presence could not be announced in Redis")

    def _drain(self, **_: object) -> None:
        """Let running work end, and accept no more. Celery calls this in the handler of the signal to stop."""
        POOL_THREADS.draining = True
        steps = {"ready file": self._health.drain, "fleet": self._announcer.drain}
        _log_failures("a step of the worker's stop failed", run_each(steps))

    def _doubt(self, exception: object = None, **_: object) -> None:
        if not isinstance(exception, WorkFailed):  # that is a failure of the turn, not of the worker
            self._health.check_soon()

    def _stopped(self, sender: Any = None, **_: object) -> None:
        if getattr(sender, "app", None) is self._app:
            steps: dict[str, Callable[[], object]] = {
                "ready file": self._health.drain,
                "fleet": self._announcer.end,
                "metrics": self._announcer.flush,  # Flush the counts of the last tasks.
                "telemetry": lambda: stop_telemetry(self._stop_telemetry),
            }
            _log_failures("a step of the worker's stop failed", run_each(steps))
