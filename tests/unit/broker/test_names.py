"""Which lists workers read, and in which order."""

from __future__ import annotations

from brainq.broker.names import COORDINATOR_QUEUES, FINALIZE_QUEUE, JUDGES_QUEUE, TURNS_QUEUE, read_order


def test_every_priority_of_celerys_is_read_where_foreign_producers_send() -> None:
    assert read_order(COORDINATOR_QUEUES) == [
        TURNS_QUEUE,
        *(f"{TURNS_QUEUE}\x06\x16{priority}" for priority in range(1, 10)),
    ]


def test_a_queues_later_list_is_read_behind_every_queues_first() -> None:
    assert read_order([JUDGES_QUEUE, FINALIZE_QUEUE]) == [
        JUDGES_QUEUE,
        FINALIZE_QUEUE,
        f"{JUDGES_QUEUE}\x06\x166",
        f"{FINALIZE_QUEUE}\x06\x166",
    ]
