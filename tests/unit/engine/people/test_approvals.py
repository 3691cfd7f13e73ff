"""Approvals: how people decide calls, and what the healer decides again."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from brainq.contracts.claim import CallRef
from brainq.contracts.people import DecideResult
from brainq.contracts.status import Effect
from brainq.engine.brain.brain import Brain
from brainq.engine.brain.brains import read_brains
from brainq.engine.people import approvals as module
from brainq.engine.people.approvals import LIST_PAGE, ApprovalDesk, ApprovalHealer
from brainq.engine.upkeep.sweeper import RowWalk
from brainq.errors import ApprovalDecided, ApprovalNotFound, InvalidInput
from tests.support.hashes import args_hash
from tests.support.stand_in import stand_in
from tests.unit.engine.people.fakes import ID, Asks, Requests, Rows, approval, asked

# ApprovalDesk: what is listed, and that a decision is made once.


brain = Brain("b", "openai:x")


@brain.tool(effect=Effect.LOCAL_WRITE)
def write(name: str) -> None: ...


def desk(rows: Rows, asks: Asks, *, redact: bool = False) -> ApprovalDesk:
    return ApprovalDesk(
        rows=stand_in(rows),
        holds=stand_in(asks),
        requests=stand_in(Requests()),
        brains=read_brains(brain),
        redact=lambda turn_id: redact,
    )


def test_a_pending_one_is_shown_as_redis_has_it() -> None:
    rows = Rows([approval(number, arguments=None) for number in range(4)])
    states = {"c1-0": asked(), "c1-1": asked(state="approved", by="ada"), "c1-2": asked(state="expired")}
    made = desk(rows, Asks(states))
    assert [(found.call_id, found.arguments) for found in made.list()] == [("c1-0", {"name": "a"})]
    assert [found.call_id for found in made.list(state="approved")] == ["c1-1"]
    assert [found.call_id for found in made.list(state="void")] == ["c1-3"]
    assert [found.state for found in made.list(state=None)] == ["void", "expired", "approved", "pending"]
    assert [found.state for found in made.of_turn("turn-1")] == ["pending", "approved", "expired", "void"]


def test_one_that_is_just_being_committed_is_left_out_and_cannot_be_decided_yet() -> None:
    made = desk(Rows([approval(age_s=1.0)]), Asks({}))
    assert made.list() == ()
    assert made.get(ID).state == "pending"
    with pytest.raises(ApprovalDecided, match="again in a few seconds") as refused:
        made.approve(ID)
    assert refused.value.state == "pending"


def test_a_list_goes_on_until_it_has_as_many_as_were_asked_for() -> None:
    count = LIST_PAGE + 20
    rows = Rows([approval(number) for number in range(count)])
    states = {f"c1-{number}": asked(state="pending" if number < 15 else "denied") for number in range(count)}
    made = desk(rows, Asks(states))
    assert [found.call_id for found in made.list(limit=10)] == [f"c1-{n}" for n in range(14, 4, -1)]
    assert len(made.list(state="denied", limit=1000)) == count - 15


def test_settled_ones_and_those_sql_was_not_told_of_are_one_list_by_age() -> None:
    rows = Rows([approval(0, state="denied"), approval(1), approval(2, state="denied"), approval(3)])
    made = desk(rows, Asks({"c1-1": asked(state="denied"), "c1-3": asked()}))
    assert [found.call_id for found in made.list(state="denied")] == ["c1-2", "c1-1", "c1-0"]
    assert [found.call_id for found in made.list(state="denied", limit=2)] == ["c1-2", "c1-1"]


def test_a_list_of_tenants_is_of_their_sessions_in_every_state() -> None:
    sessions = ("acme:1", "acme2:1", "acme:2", "beta:1")
    made = desk(
        Rows([approval(number, session_id=session) for number, session in enumerate(sessions)]),
        Asks({"c1-0": asked(), "c1-1": asked(), "c1-2": asked(state="denied"), "c1-3": asked(state="denied")}),
    )

    def seen(state: str | None) -> list[str]:
        return [found.session_id for found in made.list(state=state, sessions=("acme:",))]

    assert (seen("pending"), seen("denied"), seen(None)) == (["acme:1"], ["acme:2"], ["acme:2", "acme:1"])


def test_a_decision_is_told_to_sql_and_lets_the_call_stand_in_line() -> None:
    rows, asks = Rows([approval()]), Asks({"c1-0": asked()})
    found = desk(rows, asks).approve(ID, by="ada")
    assert (found.state, found.decided_by) == ("approved", "ada")
    assert asks.decided == [{"hash": "h1", "decision": "approved", "edited": None}]
    assert rows.told == [{"call": "c1-0", "state": "approved", "by": "ada", "comment": "", "args": None}]


def test_the_same_decision_again_gives_it_as_it_stands_and_the_other_is_refused() -> None:
    rows, asks = Rows([approval()]), Asks({"c1-0": asked()})
    made = desk(rows, asks)
    first = made.deny(ID, reason="no", by="ada")
    assert made.deny(ID, reason="another", by="bob") == first
    assert (first.comment, first.decided_by) == ("no", "ada")
    with pytest.raises(ApprovalDecided, match="denied by ada") as refused:
        made.approve(ID)
    assert (refused.value.approval_id, refused.value.state) == (ID, "denied")
    with pytest.raises(ApprovalDecided):
        made.edit(ID, {"name": "b"})


def test_a_decision_that_sql_was_not_told_of_stands_and_is_told_when_it_is_made_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rows, asks = Rows([approval()], is_down=True), Asks({"c1-0": asked()})
    made = desk(rows, asks)
    with caplog.at_level(logging.ERROR):
        assert made.approve(ID, by="ada").state == "approved"
    assert "not recorded" in caplog.text
    assert "SQL is away" not in caplog.text
    rows.is_down = False
    made.approve(ID, by="bob")
    assert [row.decided_by for row in rows.rows] == ["ada"]


def test_a_decision_is_for_the_arguments_that_were_seen() -> None:
    made = desk(Rows([approval()]), Asks({"c1-0": asked(args_hash="h2")}))
    with pytest.raises(ApprovalDecided, match="look again") as refused:
        made.approve(ID, args_hash="h1")
    assert refused.value.state == "pending"
    assert made.approve(ID).state == "approved"
    with pytest.raises(ApprovalDecided, match="with other arguments"):
        made.approve(ID, args_hash="h1")


def test_edited_arguments_take_the_place_of_the_models() -> None:
    rows, asks = Rows([approval()]), Asks({"c1-0": asked()})
    made = desk(rows, asks)
    found = made.edit(ID, {"name": "b"}, by="ada")
    assert (found.state, found.edited) == ("approved", True)
    assert asks.decided[0]["hash"] == "h1"
    assert rows.told[0]["args"] == {"name": "b"}
    assert made.edit(ID, {"name": "b"}).state == "approved"
    with pytest.raises(ApprovalDecided, match="with other arguments"):
        made.edit(ID, {"name": "c"})


def test_an_edit_that_changes_nothing_is_an_approval() -> None:
    asks = Asks({"c1-0": asked(args_hash=args_hash({"name": "a"}))})
    made = desk(Rows([approval()]), asks)
    assert made.edit(ID, {"name": "a"}).edited is False
    assert asks.decided[0]["edited"] is None
    assert made.edit(ID, {"name": "a"}).state == "approved"


def test_redacted_arguments_are_not_given_to_sql() -> None:
    rows = Rows([approval(arguments=None)])
    desk(rows, Asks({"c1-0": asked()}), redact=True).edit(ID, {"name": "b"})
    assert rows.told[0]["args"] is None


def test_edited_arguments_that_redis_has_let_go_are_not_taken_for_the_models() -> None:
    rows = Rows([approval()])
    states = {"c1-0": asked(state="approved", edited=True, args_hash="h2", arguments=None)}
    assert desk(rows, Asks(states)).get(ID).arguments is None


@pytest.mark.parametrize(
    ("word", "state", "remedy"),
    [
        (("EXPIRED", ""), "expired", "another turn"),
        (("ENDED", "cancelled"), "void", "is cancelled"),
        (("GONE", ""), "void", "submit another turn"),
    ],
)
def test_what_cannot_be_decided_any_more_says_how_it_stands(
    word: tuple[DecideResult, str], state: str, remedy: str
) -> None:
    asks = Asks({} if word[0] == "GONE" else {"c1-0": asked()}, word)
    with pytest.raises(ApprovalDecided, match=remedy) as refused:
        desk(Rows([approval()]), asks).approve(ID)
    assert refused.value.state == state


def test_a_decision_that_redis_lost_is_asked_for_again() -> None:
    rows = Rows([approval(state="approved", decided_by="ada")])
    made = desk(rows, Asks({"c1-0": asked()}))
    assert made.get(ID).state == "pending"
    assert made.deny(ID).state == "denied"


def test_what_is_no_approval_is_refused() -> None:
    made = desk(Rows([]), Asks({}))
    with pytest.raises(InvalidInput, match="TURN-CALL"):
        made.get("turn-1")
    with pytest.raises(ApprovalNotFound, match="brainq approvals"):
        made.get(ID)


# ApprovalHealer: decisions that Redis has forgotten are made again, all of them.


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
