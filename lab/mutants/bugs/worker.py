"""Bugs of a worker's life: when it is ready, what it does without what it needs, how it starts and ends."""

from __future__ import annotations

from lab.mutants.bug import Bug

HEALTH = "brainq/adapters/celery/worker_health.py"
CONSUMER = "brainq/adapters/celery/celery57/consumer.py"
WORKER = "brainq/adapters/celery/celery57/worker.py"
RESOURCES = "brainq/runtime/processes/resources.py"
POOL = "brainq/workers/tasks/pool_app.py"
KEEPER = "brainq/workers/tasks/worker_keeper.py"
OTEL = "brainq/runtime/observe/otel_setup.py"
IN_HEALTH = ("tests/unit/adapters/celery/test_worker_health.py",)
IN_PROGRAM = ("tests/unit/adapters/celery/test_worker_program.py",)
IN_FITNESS = ("tests/integration/adapters/celery/test_fitness.py",)
IN_RESOURCES = ("tests/unit/runtime/processes/test_resources.py",)
IN_SHORTAGE = (
    "tests/integration/engine/test_engine_faults.py::test_what_a_process_lacks_is_not_its_models_failure",
    "tests/integration/engine/test_engine_faults.py::test_a_model_is_asked_again_after_a_shortage_that_is_over",
)
IN_OPTIONS = ("tests/unit/adapters/celery/test_worker_options.py",)
IN_START = ("tests/unit/workers/tasks/test_pool_worker.py",)
IN_RENEWAL = ("tests/unit/workers/tasks/test_renewal.py",)
IN_OTEL = ("tests/unit/runtime/observe/test_otel_setup.py",)
IN_FULL_LOG = ("tests/unit/runtime/observe/test_full_log.py",)
IN_RUNNING = ("tests/unit/cli/test_running.py",)

BUGS = (
    Bug(
        "a shortage that a library has wrapped is none",
        RESOURCES,
        "        told = told.__cause__ or (None if told.__suppress_context__ else told.__context__)",
        "        told = None",
        IN_RESOURCES,
    ),
    Bug(
        "a shortage in a group of exceptions is none",
        RESOURCES,
        "        return any(map(is_shortage, failure.exceptions))",
        "        return False",
        IN_RESOURCES,
    ),
    Bug(
        "a shortage that is over counts as one now",
        RESOURCES,
        "    return is_shortage(failure) and bool(find_shortage())",
        "    return is_shortage(failure)",
        IN_RESOURCES,
    ),
    Bug(
        "a turn fails for what its coordinator lacks",
        "brainq/engine/turn/coordinator.py",
        "if self.is_unavailable(failure) or is_short_now(failure):",
        "if self.is_unavailable(failure):",
        IN_SHORTAGE,
    ),
    Bug(
        "what a process lacks is its model's failure",
        "brainq/engine/turn/text_stream.py",
        "if is_shutdown(failure) or is_short_now(failure):",
        "if is_shutdown(failure):",
        IN_SHORTAGE,
    ),
    Bug(
        "a model is not asked again after a shortage that is over",
        "brainq/engine/turn/text_stream.py",
        "            retryable=was_short,",
        "            retryable=False,",
        IN_SHORTAGE,
    ),
    Bug(
        "a worker is ready before it consumes",
        HEALTH,
        "is_ready = can_work and state.consumes and not state.gap",
        "is_ready = can_work and not state.gap",
        IN_HEALTH,
    ),
    Bug(
        "a worker without SQL, which it writes in every turn, stays ready",
        HEALTH,
        "is_ready = can_work and state.consumes and not state.gap",
        "is_ready = can_work and state.consumes",
        IN_HEALTH,
    ),
    Bug(
        "a ready file that could not be written is never tried again",
        HEALTH,
        "is_marked=is_marked_ready(),",
        "is_marked=not self._needs.wrong,",
        IN_HEALTH,
    ),
    Bug(
        "a worker that drains is marked as ready",
        HEALTH,
        'return ("unmark",) if state.is_marked else ()',
        "return ()",
        IN_HEALTH,
    ),
    Bug(
        "a ready file that cannot be removed leaves out the rest of a stop",
        HEALTH,
        "            self._outage.failed(failure)  # the next look tries again",
        "            raise failure",
        IN_HEALTH,
    ),
    Bug(
        "a look that hangs is waited for",
        HEALTH,
        "if asking and age_s > LOOK_LIMIT_S else self.found",
        "if asking and False else self.found",
        IN_HEALTH,
    ),
    Bug(
        "a worker says that it can work again while it is not connected",
        HEALTH,
        "elif self._reported_lack and state.consumes and not state.lacks:",
        "elif self._reported_lack and not state.lacks:",
        IN_HEALTH,
    ),
    Bug(
        "a process that is short of something ends at its start",
        HEALTH,
        "            if not is_shortage(failure):\n                raise\n            return",
        "            raise\n            return",
        IN_HEALTH,
    ),
    Bug(
        "an exception of a message's start quarantines the message",
        CONSUMER,
        '                request = strategies[message.headers["task"]](message, body, *acks)',
        '                request = strategies[message.headers["task"]](message, body, *acks)\n'
        "                if request is not None:\n"
        "                    self.on_task_request(request)\n"
        "                    return",
        IN_FITNESS,
    ),
    Bug(
        "a task that could not be started is thrown away",
        CONSUMER,
        "            message.requeue()\n",
        "            message.reject()\n",
        IN_FITNESS,
    ),
    Bug(
        "what watches received tasks keeps one from being started",
        CONSUMER,
        '                log.error("a handler of received tasks failed", failure=failure)',
        "                raise failure",
        IN_FITNESS,
    ),
    Bug(
        "a consumer that lost its connection says that it consumes",
        CONSUMER,
        "                parent.is_connected = False\n",
        "                pass\n",
        (*IN_PROGRAM, *IN_FITNESS),
    ),
    Bug(
        "an event loop that hangs says that it consumes",
        CONSUMER,
        "return self.is_connected and is_turning and tasks",
        "return self.is_connected and tasks",
        IN_FITNESS,
    ),
    Bug(
        "a worker waits longer each time for a broker that is away",
        CONSUMER,
        "            interval_step=0,\n            interval_max=RECONNECT_S,\n",
        "",
        IN_PROGRAM,
    ),
    Bug(
        "a worker out of descriptors ends",
        CONSUMER,
        "                if not is_shortage(failure):\n                    raise\n",
        "                raise\n",
        IN_PROGRAM,
    ),
    Bug(
        "a worker that ends by itself ends with 0",
        WORKER,
        "if not self.exitcode and not was_asked_to_end():",
        "if False:",
        IN_PROGRAM,
    ),
    Bug(
        "a worker that was asked to end has failed",
        WORKER,
        "if not self.exitcode and not was_asked_to_end():",
        "if not self.exitcode:",
        IN_PROGRAM,
    ),
    Bug(
        "a stop with code 0 is taken for none",
        WORKER,
        "flag is not None and flag is not False",
        "bool(flag)",
        IN_PROGRAM,
    ),
    Bug(
        "a worker that ends by itself stays ready while its tasks end",
        WORKER,
        "        if not was_asked_to_end():  # Otherwise",
        "        if False:  # else",
        IN_PROGRAM,
    ),
    Bug(
        "prefetching that the configuration switched off is accepted",
        WORKER,
        'given = {"disable_prefetch": app.conf.worker_disable_prefetch, **options}',
        "given = options",
        IN_OPTIONS,
    ),
    Bug(
        "a worker accepts one queue of another pool beside its own",
        "brainq/adapters/celery/worker_options.py",
        "is_wrong = not chosen <= set(queues)",
        "is_wrong = not chosen & set(queues)",
        IN_OPTIONS,
    ),
    Bug(
        "a worker without descriptors can work",
        RESOURCES,
        "SPARE_FILES = 16",
        "SPARE_FILES = 1",
        IN_RESOURCES,
    ),
    Bug(
        "looking for descriptors uses them up",
        RESOURCES,
        "            os.close(file)",
        "            pass",
        IN_RESOURCES,
    ),
    Bug(
        "a disk that is full at the start is never looked at",
        RESOURCES,
        "_NOT_OURS = frozenset({errno.ENOENT,",
        "_NOT_OURS = frozenset({errno.ENOSPC, errno.ENOENT,",
        IN_RESOURCES,
    ),
    Bug(
        "one step of a start that fails leaves out those behind it",
        POOL,
        "            failures[name] = failure\n",
        "            failures[name] = failure\n            break\n",
        IN_START,
    ),
    Bug(
        "a step of a start that failed is not done again",
        POOL,
        "        self._steps_left = {name: steps[name] for name in failures}",
        "        self._steps_left = {}",
        IN_START,
    ),
    Bug(
        "a worker that the fleet does not know of is ready",
        POOL,
        "        if not self._announcer.is_heard:",
        "        if False:",
        IN_START,
    ),
    Bug(
        "a worker whose threads do not work can work",
        POOL,
        "    if problems := thread_problems():",
        "    if problems := []:",
        IN_START,
    ),
    Bug(
        "a keeper whose ready file cannot be written ends",
        KEEPER,
        "with suppress(OSError):  # such as on",
        "if True:  # such as on",
        IN_RENEWAL,
    ),
    Bug(
        "a keeper whose worker ended by itself ends with 0",
        KEEPER,
        "0 if self._is_stopping else 1",
        "0",
        IN_RENEWAL,
    ),
    Bug(
        "a start that the system refuses ends `brainq up`",
        "brainq/cli/dev/supervisor.py",
        "except (OSError, MemoryError, SetupError) as refused:",
        "except SetupError as refused:",
        IN_RUNNING,
    ),
    Bug(
        "a start that was refused is taken for one",
        "brainq/cli/dev/supervisor.py",
        "            life.again_at = now + restart_wait_s(life.deaths)\n            wait_s",
        "            life.again_at, life.began = now, now\n            wait_s",
        IN_RUNNING,
    ),
    Bug(
        "a full disk under its log keeps a gateway from starting",
        "brainq/workers/gateway.py",
        "    outlive_full_log()\n",
        "",
        IN_FULL_LOG,
    ),
    Bug(
        "traces and metrics are waited for one after the other",
        OTEL,
        "        thread.join(max(0.0, until - time.monotonic()))",
        "        thread.join(STOP_S)",
        IN_OTEL,
    ),
    Bug(
        "spans are posted below the path of a signal",
        OTEL,
        r'return re.sub(r"(/v1/(traces|metrics|logs))?/*$", "", ',
        'return re.sub(r"/*$", "", ',
        IN_OTEL,
    ),
    Bug(
        "an address of gRPC is taken for one of HTTP",
        OTEL,
        'if parts.scheme not in ("http", "https"):',
        "if not parts.scheme:",
        IN_OTEL,
    ),
)
