"""Callbacks that go on behind their results, and who does them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from brainq.engine.finalize import result
from brainq.engine.finalize.result import BackgroundCallbacks


def test_there_are_so_many_places_and_one_is_free_again_once_its_work_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_work: list[Callable[[], None]] = []
    monkeypatch.setattr(result, "run_in_thread", at_work.append)
    places = BackgroundCallbacks(max_threads=1)
    assert places.start(lambda: None)
    assert not places.start(lambda: None)
    at_work.pop()()
    assert places.start(lambda: None)


def test_where_the_system_gives_no_thread_nobody_keeps_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(work: Callable[[], None]) -> None:
        raise RuntimeError("can't start new thread")

    places = BackgroundCallbacks(max_threads=1)
    with monkeypatch.context() as patch:
        patch.setattr(result, "run_in_thread", none_left)
        assert not places.start(lambda: None)
    assert places.start(lambda: None)
