"""Bugs of brainq in one program: its threads, its directory, and what a killed program leaves."""

from __future__ import annotations

from lab.mutants.bug import Bug

LOOP = ("tests/unit/app/local/test_pool_loop.py",)
QUEUES = ("tests/integration/local/test_queues.py",)
LOCAL = ("tests/integration/local/test_local.py",)
KILLED = ("tests/integration/local/test_killed.py",)

BUGS = (
    Bug(
        "an abandoned call gives its thread back twice",
        "brainq/app/local/pool_loop.py",
        "            leave = self._leave.pop()  # one atomic step: only one caller gets it\n",
        "            leave = self._leave[0]\n",
        LOOP,
    ),
    Bug(
        "a pool takes one message at a time",
        "brainq/app/local/pool_loop.py",
        "            self._let_another_wait()\n            visit.run()\n",
        "            visit.run()\n            self._let_another_wait()\n",
        LOOP,
    ),
    Bug(
        "a failure ends the thread of its pool",
        "brainq/app/local/pool_loop.py",
        "        except BaseException as failure:  # SystemExit, too: it must not cost the pool a thread\n",
        "        except Exception as failure:\n",
        LOOP,
    ),
    Bug(
        "a message that was taken when the pool drains is lost",
        "brainq/app/local/pool_loop.py",
        "        self._reader.put_back(message)\n",
        "",
        LOOP,
    ),
    Bug(
        "later work takes every thread of the finalizer",
        "brainq/app/local/pool_loop.py",
        "        if LATER_THREADS.free:\n",
        "        if self.keys:\n",
        LOOP,
    ),
    Bug(
        "a returned message goes to the end of its queue",
        "brainq/adapters/redis/queues.py",
        '"RPUSH", message.key',
        '"LPUSH", message.key',
        QUEUES,
    ),
    Bug(
        "a reader keeps a broken connection",
        "brainq/adapters/redis/queues.py",
        "        except BaseException:\n            self.close()\n",
        "        except BaseException:\n",
        QUEUES,
    ),
    Bug(
        "the steps after results are cut off when the block ends",
        "brainq/app/local/worker.py",
        "        self._finish_steps(finalizer, until)\n",
        "        finalizer.drain()\n",
        LOCAL,
    ),
    Bug(
        "a failed start keeps the process from another",
        "brainq/client/local.py",
        "    try:\n        yield\n    finally:\n        _at_work.release()\n",
        "    yield\n    _at_work.release()\n",
        LOCAL,
    ),
    Bug(
        "a forked child ends the work of its parent",
        "brainq/client/local.py",
        "        if os.getpid() != self._process:\n",
        "        if not self._process:\n",
        LOCAL,
    ),
    Bug(
        "what a killed program held waits until its lease lapses",
        "brainq/app/local/worker.py",
        "        wiring.state.sweeper.lapse_others(wiring.owner)\n",
        "",
        KILLED,
    ),
    Bug(
        "the Redis of a killed program is not waited for",
        "brainq/client/local.py",
        "            if _is_alive(",
        "            if data.exists() or _is_alive(",
        LOCAL,
    ),
)
