"""The pools of a pump as one thread, which runs beside a test."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

from tests.support.pump import Pump


@contextmanager
def pumping(pump: Pump) -> Generator[None]:
    """Let turns continue by themselves in the context."""
    over = threading.Event()

    def drive() -> None:
        while not over.wait(0.01):
            pump.drain()

    driver = threading.Thread(target=drive)
    driver.start()
    try:
        yield
    finally:
        over.set()
        driver.join()
