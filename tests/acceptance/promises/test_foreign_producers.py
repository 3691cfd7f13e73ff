"""Producers that are not brainq's client: bare kombu, a text pushed by hand, and Node."""

from __future__ import annotations

import pytest

from brainq.errors import TurnRejected
from tests.support.brains.obedient import script
from tests.support.foreign import push_by_hand, push_with_kombu
from tests.support.wait import wait_until
from tests.support.world import World


def fields(sid: str, text: str) -> dict[str, object]:
    return {"turn_id": f"t-{sid}", "session_id": sid, "user_message": script([("read", {"name": "a"})], final=text)}


def text_of(world: World, turn_id: str) -> str:
    wait_until(lambda: world.wiring.store.turns.get(turn_id), "the foreign turn was accepted")
    return world.client.handle(turn_id).result(timeout_s=60).text


def test_kombu_with_three_headers(calm: World, sid: str) -> None:
    push_with_kombu(calm.redis.url, fields(sid, "for kombu"))
    assert text_of(calm, f"t-{sid}") == "for kombu"


def test_a_text_pushed_by_hand(calm: World, sid: str) -> None:
    push_by_hand(calm.wiring.state.redis, fields(sid, "by hand"))
    assert text_of(calm, f"t-{sid}") == "by hand"


def test_the_same_message_three_times_is_one_turn(calm: World, sid: str) -> None:
    for _ in range(3):
        push_with_kombu(calm.redis.url, fields(sid, "once"))
    assert text_of(calm, f"t-{sid}") == "once"
    assert len(calm.wiring.store.turns.list(session_id=sid)) == 1


def test_a_bad_one_becomes_a_rejected_row(calm: World, sid: str) -> None:
    push_with_kombu(calm.redis.url, {**fields(sid, "x"), "limits": {"max_steps": 0}})
    wait_until(lambda: calm.wiring.store.turns.get(f"t-{sid}"), "the refusal was written down")
    with pytest.raises(TurnRejected, match=r"^limits.max_steps"):
        calm.client.handle(f"t-{sid}").result(timeout_s=60)
