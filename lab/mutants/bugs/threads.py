"""Bugs of background threads: what ends one for good, and what is recorded before it has been done."""

from __future__ import annotations

from lab.mutants.bug import Bug

THREADS = ("tests/unit/runtime/observe/test_threads.py",)
LEASES = ("tests/unit/test_leases.py",)
LOOPS = ("tests/unit/runtime/processes/test_loop_thread.py",)
POOL = ("tests/unit/adapters/celery/test_threads.py",)
BULKS = ("tests/unit/client/test_bulk_threads.py",)
CUTS = ("tests/unit/engine/models/test_stall_clock.py",)
EXECUTOR = ("tests/unit/engine/calls/test_executor.py",)
LOST_ANSWERS = ("tests/unit/runtime/processes/test_lost_answers.py",)
STOPS = ("tests/integration/people/test_stops.py",)

BUGS = (
    Bug(
        "a kept thread ends by what is no Exception",
        "brainq/runtime/observe/threads.py",
        "        except BaseException as raised:\n            failure = raised\n        if not self.stopping",
        "        except Exception as raised:\n            failure = raised\n        if not self.stopping",
        THREADS,
    ),
    Bug(
        "a refused thread is recorded as started",
        "brainq/runtime/observe/threads.py",
        "            try:\n                _start(thread, pauses_s)\n",
        "            self._thread = thread\n            thread.is_alive = lambda: True  # type: ignore\n"
        "            try:\n                _start(thread, pauses_s)\n",
        THREADS,
    ),
    Bug(
        "a look for problems starts no thread that was refused",
        "brainq/runtime/observe/threads.py",
        "                self._start(())\n",
        "                raise RuntimeError\n",
        THREADS,
    ),
    Bug(
        "a child of a fork takes its parent's lock",
        "brainq/runtime/observe/threads.py",
        "self._lock, self._thread, self._is_wanted = threading.Lock(), None, False",
        "self._thread, self._is_wanted = None, False",
        THREADS,
    ),
    Bug(
        "a thread that fails again and again is no problem",
        "brainq/runtime/observe/threads.py",
        "if self._failures < 2 or",
        "if self._failures < 2_000_000_000 or",
        THREADS,
    ),
    Bug(
        "what ends a kept task is not counted",
        "brainq/runtime/observe/tasks.py",
        "await asyncio.sleep(self.failed(failure))",
        "await asyncio.sleep(0)",
        THREADS,
    ),
    Bug(
        "a lease is renewed by nobody after a refused thread",
        "brainq/runtime/leases.py",
        "            self._thread.ensure()\n",
        "            if len(self._renewals) == 1:\n                self._thread.ensure()\n",
        LEASES,
    ),
    Bug(
        "a beat that exits costs the other leases their round",
        "brainq/runtime/leases.py",
        "because of it.\n                except BaseException as failure:",
        "because of it.\n                except Exception as failure:",
        LEASES,
    ),
    Bug(
        "a holder that exits when it hears of its loss ends the round",
        "brainq/runtime/leases.py",
        "        renewal.on_lost(word)\n    except BaseException",
        "        renewal.on_lost(word)\n    except Exception",
        LEASES,
    ),
    Bug(
        "a watcher that exits keeps the others from hearing of a stop",
        "brainq/adapters/redis/listener.py",
        "        except BaseException as failure:  # a tool's own",
        "        except Exception as failure:  # a tool's own",
        STOPS,
    ),
    Bug(
        "an async callback that exits raises SystemExit in its caller's thread",
        "brainq/runtime/processes/threads.py",
        "    return failure if isinstance(failure, Exception) else UserCodeExit(what, failure)",
        "    return failure  # type: ignore",
        LOOPS,
    ),
    Bug(
        "a plain callback that exits ends its thread",
        "brainq/runtime/processes/threads.py",
        "if isinstance(failure, Exception) or is_shutdown(failure):",
        "if isinstance(failure, Exception | SystemExit) or is_shutdown(failure):",
        LOOPS,
    ),
    Bug(
        "Ctrl+C in the main thread is an error of a callback",
        "brainq/runtime/processes/threads.py",
        "threading.current_thread() is threading.main_thread()",
        "threading.current_thread() is not threading.main_thread()",
        LOOPS,
    ),
    Bug(
        "an end that fails keeps its place in the worker",
        "brainq/adapters/celery/celery57/thread_pool.py",
        "            self._end_as_failed(end, failure)\n",
        "            del failure\n",
        POOL,
    ),
    Bug(
        "a task without a thread keeps its place in the worker",
        "brainq/adapters/celery/celery57/thread_pool.py",
        "            give_up(run, refused)\n",
        "            raise RuntimeError from refused\n",
        POOL,
    ),
    Bug(
        "a waiting task without a thread keeps its place in the worker",
        "brainq/adapters/celery/celery57/thread_pool.py",
        "                give_up(following, refused)\n",
        "                raise RuntimeError from refused\n",
        POOL,
    ),
    Bug(
        "a bulk whose thread is refused runs for ever",
        "brainq/client/bulk.py",
        "            try:\n                thread = start_thread(",
        "            self._running[run] = None  # type: ignore\n"
        "            try:\n                thread = start_thread(",
        BULKS,
    ),
    Bug(
        "the report of a bulk without a saver says that it runs",
        "brainq/client/bulk_run.py",
        "        try:\n            saver.ensure()\n",
        "        saver.ensure()\n        try:\n",
        BULKS,
    ),
    Bug(
        "a cut that could not be moved is recorded as moved",
        "brainq/runtime/processes/timers.py",
        "        self._thread.ensure()\n        with self._changed:\n            watch.due = due\n",
        "        watch.due = due\n        self._thread.ensure()\n        with self._changed:\n",
        CUTS,
    ),
    Bug(
        "a watch that was moved to a later time is done at its first",
        "brainq/runtime/processes/timers.py",
        "                if watch.due > due:\n",
        "                if watch.due > due + 1e9:\n",
        ("tests/unit/engine/calls/test_watchdog.py",),
    ),
    Bug(
        "a result that exits when it is read ends the thread of its call",
        "brainq/engine/calls/function_run.py",
        "        except BaseException as error:  # a `__str__`",
        "        except Exception as error:  # a `__str__`",
        EXECUTOR,
    ),
    Bug(
        "an answer that cannot be read leaves its callers waiting",
        "brainq/runtime/processes/quarantine_pool.py",
        "        except BaseException as lost:",
        "        except (FrameLostError, OSError, ValueError) as lost:",
        LOST_ANSWERS,
    ),
    Bug(
        "a tool process that cannot read outlives its owner",
        "brainq/engine/calls/tool_processes.py",
        "        finally:\n            os.killpg",
        "        except FrameLostError:\n            os.killpg",
        LOST_ANSWERS,
    ),
)
