"""What a process that is gone held ends, whatever one turn's keys hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from redis.exceptions import OutOfMemoryError, ResponseError

from brainq.adapters.redis.keys import Keys
from brainq.adapters.redis.script_text import NAMES
from brainq.adapters.redis.sweeper import RedisSweeperState
from brainq.contracts.fleet import GoneProcess


class Redis:
    """Stands for the scripts and the fleet: two processes are gone, and two turns are worked on."""

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)
        self.forgotten: list[str] = []
        self.keys = Keys("bq:")
        self.client = self
        self.loaded = {name: name for name in NAMES}

    def time(self) -> tuple[int, int]:
        return 1, 0

    def zrangebyscore(self, *_: object) -> list[str]:
        return ["s1 t1", "s1 t2"]

    def run(self, name: str, replies: Mapping[str, Any], session_id: str, values: list[Any]) -> Any:
        if name == "presence_look":
            return replies["LOOKED"](["LOOKED", "w1", "5", "w2", "5"])
        return self.forgotten.append(values[1])

    def pipeline(self, calls: list[Any]) -> tuple[list[Any], list[Any]]:
        return self.replies, []

    def withdraw_process(self, process: str) -> None:
        pass


def sweeper(redis: Any) -> RedisSweeperState:
    return RedisSweeperState(redis, redis, rering_s=5.0, failing_s=5.0, unserved_s=15.0)


def test_one_turn_that_cannot_be_read_keeps_no_other_from_going_on() -> None:
    redis = Redis(ResponseError("user_script:5: oh"), 2)
    assert sweeper(redis).lapse_gone() == [GoneProcess("w1", 5, 2), GoneProcess("w2", 5, 2)]
    assert redis.forgotten == ["w1", "w2"]


def test_a_redis_that_takes_nothing_is_asked_again() -> None:
    redis = Redis(OutOfMemoryError("full"), OutOfMemoryError("full"))
    with pytest.raises(OutOfMemoryError):
        sweeper(redis).lapse_gone()
    assert redis.forgotten == []
