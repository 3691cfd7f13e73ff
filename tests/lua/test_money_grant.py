"""money_grant.lua: what SQL has granted a window."""

from __future__ import annotations

from typing import Any

from tests.lua.rig import Rig
from tests.support.money import counted, counter, granted


def test_a_lost_counter_begins_with_all_that_was_granted(rig: Rig) -> None:
    granted(rig, 0.55, spent=0.5)
    granted(rig, 0.4, spent=0.0)
    assert counted(rig, "granted", "spent") == [0.55, 0.5], "it is granted no less than before"
    assert rig.client.pttl(counter(rig)) > 0


def test_it_is_said_again(rig: Rig) -> None:
    given: dict[str, Any] = {
        "counter": counter(rig),
        "granted": "0.5",
        "spent": "0.1",
        "is_full": "1",
        "returned": "0",
        "keep_ms": 1000,
    }
    assert rig.run("money_grant", **given) == ["GRANTED"]


def test_a_counter_of_another_redis_lacks_what_was_spent_last(rig: Rig) -> None:
    granted(rig, 0.6)
    rig.client.hset(counter(rig), mapping={"spent": "0.2", "held": "0.1", "n": 1, "run": "another"})
    granted(rig, 0.7, spent=0.6)
    assert counted(rig, "granted", "spent", "held") == [0.7, 0.5, 0.1], "with what is held it comes to what was granted"
    granted(rig, 0.8, spent=0.7)
    assert counted(rig, "spent") == [0.5], "once"
