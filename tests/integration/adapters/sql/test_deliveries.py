"""Deliveries as jobs: planned with what they tell of, claimed by one, settled once."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from brainq.adapters.sql.records import SqlRecords
from brainq.adapters.sql.repositories.deliveries import AnnouncingApprovals
from brainq.adapters.sql.store import Store
from brainq.contracts.claim import FinalStepClaim
from brainq.contracts.people import ApprovalRequest
from brainq.contracts.status import Effect
from brainq.contracts.webhook import DeliveryRow, NewDelivery, Webhook
from brainq.engine.jobs import delivery_key
from tests.integration.adapters.sql.examples import at_once, request, result

URL = "https://example.com/"
HOOK = Webhook(URL, b"s" * 32)
LONG_S = 3600.0


def plan(store: Store, *turns: str, url: str = URL, after_s: float = 0.0, session: str = "s1") -> None:
    rows = [NewDelivery(f"msg_{turn}", url, "turn.ended", session, turn, "{}") for turn in turns]
    with store.database.transaction() as connection:
        store.deliveries.plan(connection, rows, after_s)


def lapse(store: Store) -> None:
    """All leases and waits are over."""
    with store.engine.connect() as connection:
        connection.execute(text("UPDATE deliveries SET due_at = created_at"))


def only(store: Store) -> DeliveryRow:
    (row,) = store.deliveries.list()
    return row


def asked(args_hash: str = "h") -> ApprovalRequest:
    return ApprovalRequest("s1", "turn-1", "c1-0", "write", Effect.LOCAL_WRITE, args_hash, "{}", "why", 60)


def test_the_same_message_is_one_delivery_a_webhook(store: Store) -> None:
    plan(store, "t1", "t2")
    plan(store, "t1")
    plan(store, "t1", url="https://other/")
    assert [(row.turn_id, row.url, row.state, row.tries) for row in store.deliveries.list()] == [
        ("t1", "https://other/", "pending", 0),
        ("t2", URL, "pending", 0),
        ("t1", URL, "pending", 0),
    ]
    assert store.deliveries.unsettled() == {"pending": 3, "dead": 0}


def test_a_claim_is_one_processes_until_its_lease_is_over(store: Store) -> None:
    plan(store, "t1")
    claims = at_once([lambda: store.deliveries.claim(URL, LONG_S)] * 4)
    (got,) = [claim for claim in claims if claim is not None]
    assert (got.message_id, got.tries, got.data_json) == ("msg_t1", 1, "{}")
    assert abs((got.now - got.created_at).total_seconds()) < 60
    lapse(store)
    again = store.deliveries.claim(URL, LONG_S)
    assert again is not None
    assert again.tries == 2
    assert store.deliveries.claim("https://other/", LONG_S) is None


def test_many_at_once_get_one_each(store: Store) -> None:
    plan(store, *(f"t{number}" for number in range(4)))
    claims = at_once([lambda: store.deliveries.claim(URL, LONG_S)] * 4)
    assert len({claim.row for claim in claims if claim is not None}) == 4


def test_what_waits_longest_comes_first_and_what_is_not_due_not_at_all(store: Store) -> None:
    plan(store, "later", after_s=LONG_S)
    plan(store, "t1", "t2")
    claimed = [store.deliveries.claim(URL, LONG_S) for _ in range(3)]
    assert [claim and claim.turn_id for claim in claimed] == ["t1", "t2", None]


def test_a_late_failure_of_an_old_try_changes_nothing_and_a_late_success_counts(store: Store) -> None:
    plan(store, "t1")
    first = store.deliveries.claim(URL, LONG_S)
    lapse(store)
    second = store.deliveries.claim(URL, LONG_S)
    assert first is not None
    assert second is not None
    assert store.deliveries.fail(delivery_key(first.row), first.tries, "late", None) is False
    assert only(store).state == "pending"
    assert store.deliveries.done(first.row) is True
    assert store.deliveries.fail(delivery_key(second.row), second.tries, "no", None) is False
    assert store.deliveries.done(second.row) is False
    assert (only(store).state, only(store).error) == ("done", None)


def test_the_dead_are_revived_and_no_others(store: Store) -> None:
    plan(store, "t1", "t2", "t3")
    for _ in range(2):
        claim = store.deliveries.claim(URL, LONG_S)
        assert claim is not None
        store.deliveries.fail(delivery_key(claim.row), claim.tries, "HTTP 500", None)
    assert store.deliveries.unsettled() == {"pending": 1, "dead": 2}
    first = next(row for row in store.deliveries.list() if row.turn_id == "t1")
    assert [store.deliveries.revive(int(first.row)) for _ in range(2)] == [True, False]
    assert (store.deliveries.revive_all(), store.deliveries.revive_all()) == (1, 0)
    assert {row.state for row in store.deliveries.list()} == {"pending"}
    assert store.deliveries.revive(10**15) is False


def test_a_list_is_of_a_state_and_of_ones_own_sessions_in_pages(store: Store) -> None:
    plan(store, "t1", session="acme:1")
    plan(store, "t2", session="acme2:1")
    plan(store, "t3", session="acme:2")
    newest = store.deliveries.list(sessions=("acme:",), limit=1)
    assert [row.turn_id for row in newest] == ["t3"]
    older = store.deliveries.list(sessions=("acme:",), before_row=int(newest[0].row))
    assert [row.turn_id for row in older] == ["t1"]
    assert store.deliveries.list("dead") == []
    assert len(store.deliveries.list("pending")) == 3


def test_an_ending_is_told_with_its_result_or_not_at_all(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.turns.accept(request())
    records, claim = SqlRecords(store, [HOOK]), FinalStepClaim("s1", "turn-1", "log", "me", 1, 1)

    def broken(*_: object) -> bool:
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(store.turns, "write_result", broken)
        with pytest.raises(OSError, match="disk"):
            records.record_answer(claim, result(), False)
    assert store.deliveries.list() == []

    assert [records.record_answer(claim, result(), False) for _ in range(2)] == [True, False]
    assert (only(store).event, only(store).turn_id) == ("turn.ended", "turn-1")
    assert store.turns.result("turn-1") is not None


def test_an_approval_is_told_with_its_row_a_moment_later(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    told = AnnouncingApprovals(store.database, store.deliveries, [HOOK])

    def broken(*_: object) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(store.deliveries, "plan", broken)
        with pytest.raises(OSError, match="disk"):
            told.request([asked()])
    assert store.approvals.list() == []

    for args_hash in ("h", "h", "other"):
        told.request([asked(args_hash)])
    assert [row.event for row in store.deliveries.list()] == ["approval.requested"] * 2
    assert len(store.approvals.list()) == 1
    assert store.deliveries.claim(URL, LONG_S) is None, "its call may not wait yet"
    lapse(store)
    assert store.deliveries.claim(URL, LONG_S) is not None
