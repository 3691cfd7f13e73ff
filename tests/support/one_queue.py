"""A process that answers doorbells of one queue, and that its tool may kill.

python -m tests.support.one_queue REDIS_URL SQL_URL QUEUE     (the brain is app:brain of the working directory)
"""

from __future__ import annotations

import importlib
import sys

from tests.support.pump import Pump


def main() -> None:
    redis_url, sql_url, queue = sys.argv[1:]
    brain = importlib.import_module("app").brain
    with Pump(brain, redis_url, sql_url, owner="mortal") as pump:
        pump.drain(queue)


if __name__ == "__main__":
    main()
