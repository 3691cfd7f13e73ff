"""Steering messages that are sent at given moments, from this process or, as a module, from another one."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from brainq.client.client import Client
from brainq.client.connection import wiring_of
from brainq.contracts.event import EventKind
from tests.support.brains.echoing import SLOWEST_S, steps_of

ROOT_MODULE = "tests.support.steering"


@dataclass(frozen=True, slots=True)
class Steer:
    """One input. Its text is unique in the test.

    at_s: seconds after the start.
    through: `turn` for its handle, or `session` for whatever turn is live then.
    """

    session_id: str
    turn_id: str
    message_id: str
    text: str
    at_s: float
    through: str = "turn"


def send(client: Client, steer: Steer) -> None:
    if steer.through == "session":
        client.session(steer.session_id).steer(steer.text, client_message_id=steer.message_id)
    else:
        client.handle(steer.turn_id).steer(steer.text, client_message_id=steer.message_id)


def send_all(client: Client, steers: Sequence[Steer], sent: Callable[[], object] = int) -> None:
    """Send each at its moment, counted from now. Late ones are sent at once."""
    began = time.monotonic()
    for steer in sorted(steers, key=lambda steer: steer.at_s):
        threading.Event().wait(max(0.0, began + steer.at_s - time.monotonic()))
        send(client, steer)
        sent()


def send_at_the_end(client: Client, steers: Sequence[Steer], sent: Callable[[], object] = int) -> None:
    """Send the first while the turn's last step is answered, or after it, and the others once it is closing."""
    left = list(steers)
    turn_id = left[0].turn_id
    for event in client.handle(turn_id).events(timeout_s=100.0):
        is_last = event.kind is EventKind.STEP_STARTED and event.data["step"] == steps_of(turn_id)
        if is_last and len(left) == len(steers):
            threading.Event().wait(random.uniform(0.0, SLOWEST_S * 2))
            send(client, left.pop(0))
            sent()
        elif event.kind is EventKind.TURN_CLOSING:
            break
    for steer in left:
        send(client, steer)
        sent()


@contextmanager
def other_process(steers: Sequence[Steer], environment: Mapping[str, str], root: str) -> Generator[Callable[[], None]]:
    """Yield a function that starts a second process, which sends these. The process is waited for at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", ROOT_MODULE],
        env=environment,
        cwd=root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    pipe = process.stdin
    try:
        pipe.write(json.dumps([asdict(steer) for steer in steers]) + "\n")
        pipe.flush()
        assert process.stdout.readline() == "ready\n"

        def go() -> None:
            pipe.write("go\n")
            pipe.flush()

        yield go
        out, _ = process.communicate(timeout=100.0)
        assert (process.returncode, out) == (0, f"{len(steers)}\n")
    finally:
        process.kill()
        process.communicate()


def main() -> None:
    with Client() as client:
        steers = [Steer(**fields) for fields in json.loads(sys.stdin.readline())]
        wiring_of(client).state.redis.ping()
        _ = wiring_of(client).store
        print("ready", flush=True)
        sys.stdin.readline()
        halves = (steers[::2], steers[1::2])
        threads = [threading.Thread(target=send_all, args=(client, half)) for half in halves]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(len(steers), flush=True)


if __name__ == "__main__":
    main()
