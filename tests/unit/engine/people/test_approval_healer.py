"""ApprovalHealer: decisions that Redis has forgotten are made again, all of them."""

from __future__ import annotations

from typing import Any

import pytest

from brainq.contracts.claim import CallRef
from brainq.engine.people import approvals as module
from brainq.engine.people.approvals import ApprovalHealer
from brainq.engine.upkeep.sweeper import RowWalk
from tests.support.stand_in import stand_in
from tests.unit.engine.people.fakes import Asks, Rows, approval, asked


def decided(count: int, **fields: Any) -> Rows:
    return Rows([approval(number, state="approved", **fields) for number in range(count)])


def states(count: int) -> dict[str, Any]:
    return {f"c1-{number}": asked() for number in range(count)}


def test_what_redis_asks_again_is_decided_again_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEAL_PAGE", 4)
    asks = Asks(states(10))
    healer = ApprovalHealer(stand_in(decided(10)), stand_in(asks))
    assert RowWalk(healer.heal).walk(60.0) == 10
    assert len(asks.decided) == 10


def test_one_that_cannot_be_decided_keeps_no_other_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asks = Asks(states(3))
    decide = asks.decide_approval

    def refuses(ref: CallRef, **given: Any) -> Any:
        if ref.call_id == "c1-0":
            raise ValueError("it cannot be read")
        return decide(ref, **given)

    monkeypatch.setattr(asks, "decide_approval", refuses)
    page = ApprovalHealer(stand_in(decided(3)), stand_in(asks)).heal(0)
    assert (page.last_row, page.more, page.healed) == (3, False, 2)


def test_other_arguments_and_those_a_person_chose_are_not_decided_again() -> None:
    asks = Asks({"c1-0": asked(args_hash="h2")})
    assert ApprovalHealer(stand_in(decided(1)), stand_in(asks)).heal(0).healed == 0
    asks = Asks({"c1-0": asked()})
    assert ApprovalHealer(stand_in(decided(1, edited=True)), stand_in(asks)).heal(0).healed == 0
    assert not asks.decided
