"""Acks from tasks' threads: places are free at once, and the event loop is woken only when it waits for one."""

from __future__ import annotations

import threading
from typing import Any

from brainq.adapters.celery.celery57.event_loop import ThreadSafeQoS


class Channel:
    do_restore = False

    def __init__(self) -> None:
        self.connection = self
        self.woken = 0

    def wake(self) -> None:
        self.woken += 1


def credit(places: int) -> tuple[Any, Channel]:
    channel = Channel()
    return ThreadSafeQoS(channel, places), channel


def test_an_ack_wakes_nobody_while_there_is_room() -> None:
    places, channel = credit(2)
    places.append("message", "t1")
    assert places.can_consume()
    places.ack("t1")
    assert channel.woken == 0


def test_an_ack_wakes_the_loop_that_waits_for_room_once() -> None:
    places, channel = credit(2)
    places.append("message", "t1")
    places.append("message", "t2")
    assert not places.can_consume()
    places.ack("t1")
    places.ack("t2")
    assert channel.woken == 1
    assert places.can_consume()


def test_an_ack_between_the_two_looks_of_the_loop_is_seen() -> None:
    places, channel = credit(1)
    places.append("message", "t1")
    looks: list[bool] = []

    class Acked(dict[str, str]):
        def __len__(self) -> int:
            if not looks:  # while the loop looks for the first time
                looks.append(True)
                count = super().__len__()
                places.ack("t1")
                return count + len(places._dirty)  # as it was when the loop looked
            return super().__len__()

    places._delivered = Acked(places._delivered)
    assert places.can_consume() or channel.woken


def test_with_many_threads_the_loop_never_waits_in_vain() -> None:
    places, channel = credit(4)
    woken = threading.Event()
    channel.wake = woken.set  # type: ignore[method-assign]
    tags = iter(range(2000))
    taken: list[threading.Thread] = []
    for tag in tags:
        while not places.can_consume():
            assert woken.wait(60), "there was room, and nobody said so"
            woken.clear()
        places.append("message", str(tag))
        thread = threading.Thread(target=places.ack, args=(str(tag),))
        thread.start()
        taken.append(thread)
    for thread in taken:
        thread.join(60)
