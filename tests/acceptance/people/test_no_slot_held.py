"""A parked turn holds no worker: with one serial slot and two of the others, twenty wait and a new one runs through."""

from __future__ import annotations

from typing import Any

from brainq.client.handle import TurnHandle
from brainq.contracts.status import Ending, TraceStatus
from tests.support.brains.obedient import script
from tests.support.elsewhere import Elsewhere
from tests.support.wait import wait_until
from tests.support.watch import parked, token_of
from tests.support.world import World

MANY = 20
KINDS = ("approval", "hold", "outside", "child")


def park_one(world: World, sid: str, kind: str) -> TurnHandle:
    """A turn that waits in a session of its own."""
    match kind:
        case "approval":
            return world.client.submit(sid, script([("sign", {"name": sid})]))
        case "hold":
            world.client.session(sid).readiness("not yet")
            return world.client.submit(sid, script([("write", {"name": sid})]))
        case "outside":
            return world.client.submit(sid, script([("send_off", {"name": sid})]))
        case _:
            inner = script([("peek", {"name": sid})])
            return world.client.submit(sid, script([("delegate", {"message": inner})]))


def test_twenty_parked_turns_hold_no_slot(narrow: World, other: Elsewhere, sid: str) -> None:
    turns = [(kind, park_one(narrow, f"{sid}-{kind}-{n}", kind)) for n in range(MANY // 4) for kind in KINDS]
    for kind, turn in turns:
        parked(turn, "people" if kind in ("approval", "hold") else "outside")
    wide = [("read", {"name": "a"}), ("read", {"name": "b"}), ("write", {"name": "w"})]
    new = narrow.client.submit(sid, script(wide, final="straight through"))
    assert new.result(timeout_s=60).text == "straight through"
    for kind, turn in turns:
        match kind:
            case "approval":
                other.client("approve", other.handle(turn, "approvals")[0]["id"])
            case "hold":
                other.handle(turn, "release", other.handle(turn, "holds")[0]["id"])
            case "outside":
                other.client("complete_call", token_of(turn, turn.session_id), "ok")
            case _:
                assert narrow.status(turn) == TraceStatus.PARKED
    children = sum(kind == "child" for kind, _ in turns)

    def asked() -> list[dict[str, Any]]:
        return other.client("approvals", limit=100)

    wait_until(lambda: len(asked()) >= children, "every child asks")
    for approval in asked():
        other.client("approve", approval["id"])
    for _, turn in turns:
        result = turn.result(timeout_s=60)
        assert (result.ending, result.text) == (Ending.COMPLETED, "done")
        assert result.parked_ms > 0
