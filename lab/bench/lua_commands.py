"""How many commands run inside scripts: counted one by one, on a few turns after those that were timed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import cast

from redis import Redis

LAST = "brainq-bench-last-command"


def lua_commands(url: str, work: Callable[[], object]) -> int:
    """Commands that scripts called while `work` ran, those of beats and the sweeper included.

    MONITOR tells each command, and by whom it was called; it slows Redis down, so nothing is timed meanwhile.
    """
    counted = 0
    with Redis.from_url(url, decode_responses=True) as client, client.monitor() as monitor:

        def count() -> None:
            nonlocal counted
            while True:
                told = cast("dict[str, str]", monitor.next_command())
                if told["client_type"] == "lua":
                    counted += 1
                elif LAST in told["command"]:
                    return

        counter = threading.Thread(target=count, name="lua-commands", daemon=True)
        counter.start()
        work()
        client.echo(LAST)
        counter.join(60)
        if counter.is_alive():
            raise TimeoutError("MONITOR did not tell the last command")
    return counted
