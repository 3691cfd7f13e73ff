"""One verb for many turns: which they are, what became of each, and that the same again changes nothing twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from brainq.client.async_client import AsyncClient
from brainq.client.bulk_run import BulkRun, next_due_s, read_where, within
from brainq.contracts.bulk import BulkReport, BulkVerb, read_rate
from brainq.engine.models.scripted import calls, says
from brainq.errors import BrainqError, InvalidInput, NotFound, Unreachable
from tests.support.people import Pumps, Watched, brain_of
from tests.support.pump import Pump
from tests.support.wait import wait_until

WRITE = calls(("write", {"name": "b"}))


def run(pump: Pump, verb: BulkVerb, where: str, pauses: list[float] | None = None) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        dues = [] if pauses is None else pauses

        def note_due(_: BulkRun, due_s: float) -> None:
            dues.append(due_s)

        patch.setattr(BulkRun, "_wait_until", note_due)
        report = pump.client.bulk(verb, where, by="ann", reason="wrong list", rate=4.0)
    assert (report.state, report) == ("done", pump.client.bulk_report(report.id))
    return report.model_dump(include={"matched", "done", "skipped", "failed"})


def test_many_are_cancelled_and_the_same_again_finds_none(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(WRITE, says("done")), approval=True))
    for session in ("acme:1", "acme:2", "bolt:1"):
        pump.submit(session, "Go.")
    dues: list[float] = []
    assert run(pump, "cancel", "tenant=acme state=accepted", dues) == {
        "matched": 2,
        "done": 2,
        "skipped": {},
        "failed": (),
    }
    assert dues[1] - dues[0] == pytest.approx(0.25, abs=1e-6)
    acts = pump.client.audit(act="cancel")
    assert [(act.reason, act.session_id[:5]) for act in acts] == [("wrong list", "acme:")] * 2
    pump.drain()
    for turn in pump.client.turns():
        if turn.session_id.startswith("acme:"):
            pump.settle(pump.client.handle(turn.turn_id))
    assert run(pump, "cancel", "tenant=acme brain=people")["skipped"] == {"the turn has ended": 2}
    assert run(pump, "cancel", "tenant=acme brain=other")["matched"] == 0


def test_what_is_pending_is_decided_and_what_is_not_is_skipped(pumps: Pumps) -> None:
    ran: list[str] = []
    pump = pumps(brain_of(Watched(WRITE, says("done")), ran, approval=True))
    handle = pump.submit("s1", "Go.")
    pump.drain()
    assert run(pump, "approve", "state=parked")["done"] == 1
    pump.finish(handle)
    assert ran == ["write b"]
    assert run(pump, "deny", "session=s1")["skipped"] == {"the turn has no pending approval": 1}


def test_a_failed_turn_is_submitted_again_once(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(says("done"))))
    handle = pump.submit("s1", "Go.", metadata={"order": "A1"}, priority="high")
    handle.cancel()
    pump.settle(handle)
    first = run(pump, "resubmit", "ending=cancelled")
    assert (first["done"], first["failed"]) == (1, ())
    again, old = pump.client.turns()
    assert (old.turn_id, again.request_key) == (handle.turn_id, f"resubmit-of-{handle.turn_id}")
    request = pump.client.handle(again.turn_id).request()
    assert (request.user_message, request.priority) == ("Go.", "high")
    assert request.metadata == {"order": "A1", "resubmit_of": handle.turn_id}
    assert run(pump, "resubmit", "ending=cancelled")["skipped"] == {"the turn was already resubmitted": 1}


NO_FILTERS = ("", "brain", "brain=", "colour=red", "older=2", "older=2y", "min_cost=much", "state=odd")


@pytest.mark.parametrize("where", NO_FILTERS)
def test_words_that_are_no_filter_are_refused(where: str) -> None:
    with pytest.raises(InvalidInput):
        read_where(where)


def test_a_rate_counts_what_a_turn_takes_and_no_burst_follows_an_outage() -> None:
    assert next_due_s(10.0, 10.001, 100.0) == pytest.approx(10.01)
    assert next_due_s(10.0, 10.3, 100.0) == pytest.approx(10.01), "it is behind, and goes on at once"
    assert next_due_s(10.0, 70.0, 100.0) == 69.0


def test_turns_are_told_as_they_are_found(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(says("done"))))
    for number in range(3):
        pump.submit(f"acme:{number}", "Go.")
    seen: list[BulkReport] = []
    found = pump.client.bulk("cancel", "tenant=acme", dry_run=True, on_progress=seen.append)
    assert [(report.matched, report.tried) for report in seen] == [(3, 0)]
    assert found.matched == 3


def test_a_rate_is_turns_a_second() -> None:
    assert (read_rate("20/s"), read_rate("0.5")) == (20.0, 0.5)
    with pytest.raises(InvalidInput, match="rate"):
        read_rate("0/s")


def test_one_that_goes_on_is_followed_and_stopped_and_its_client_stops_it_too(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(WRITE, says("done")), approval=True))
    for number in range(3):
        pump.submit(f"acme:{number}", "Go.")
    begun = pump.client.start_bulk("cancel", "tenant=acme", rate=0.001)

    def report() -> Any:
        return pump.client.bulk_report(begun.id)

    wait_until(lambda: report().done == 1, "the first is done; the next comes in a quarter of an hour")
    assert (report().state, report().matched, report().kinds) == ("running", 3, {"active": 3})
    assert pump.client.stop_bulk(begun.id)
    wait_until(lambda: report().state == "stopped", "it stops though it waits")
    assert (report().done, report().failures) == (1, 0), "what was left is as it was"
    assert not pump.client.stop_bulk(begun.id)
    assert [act.subject for act in pump.client.audit(act="bulk")] == [f"cancel {begun.id}"]
    again = pump.client.start_bulk("cancel", "tenant=acme state=accepted", rate=0.001)
    wait_until(lambda: pump.client.bulk_report(again.id).done == 1, "it goes on")
    pump.client._bulks.close()  # pyright: ignore[reportPrivateUsage]
    assert pump.client.bulk_report(again.id).state == "stopped"


def test_one_whose_process_is_gone_is_lost(pumps: Pumps, monkeypatch: pytest.MonkeyPatch) -> None:
    pump = pumps(brain_of(Watched(says("done"))))
    report = pump.client.bulk("cancel", "state=accepted", dry_run=True)
    bulks = pump.wiring.state.bulks
    bulks.save(report.model_copy(update={"state": "running"}))
    assert pump.client.bulk_report(report.id).state == "running"
    monkeypatch.setattr("brainq.adapters.redis.bulks.SILENT_MS", -1)
    assert pump.client.bulk_report(report.id).state == "lost"
    with pytest.raises(NotFound):
        pump.client.bulk_report("nosuch")


def test_what_fails_is_in_the_report_and_the_rest_is_done(pumps: Pumps, monkeypatch: pytest.MonkeyPatch) -> None:
    pump = pumps(brain_of(Watched(says("done"))))
    handles = [pump.submit(f"s{number}", "Go.") for number in range(2)]
    cancel = pump.client.cancel

    def refuse(session_id: str, turn_id: str, reason: str = "") -> Any:
        if turn_id == handles[1].turn_id:
            raise BrainqError("no")
        return cancel(session_id, turn_id, reason)

    monkeypatch.setattr(pump.client, "cancel", refuse)
    found = run(pump, "cancel", "state=accepted")
    assert (found["done"], found["failed"]) == (1, ({"turn_id": handles[1].turn_id, "why": "no"},))

    def away(*_: str) -> Any:
        raise Unreachable("Redis does not answer")

    monkeypatch.setattr(pump.client, "cancel", away)
    report = pump.client.bulk("cancel", "session=s1")
    assert (report.state, report.error, report.tried) == ("failed", "Redis does not answer", 0)


@pytest.mark.parametrize(
    ("where", "prefixes", "both"),
    [
        ("brain=b", None, None),
        ("brain=b", ("acme:",), ("acme:",)),
        ("tenant=acme", ("acme:eu:",), ("acme:eu:",)),
        ("tenant=acme", ("a", "bolt:"), ("acme:",)),
    ],
)
def test_a_bulk_is_about_sessions_that_its_words_and_its_caller_have(where: str, prefixes: Any, both: Any) -> None:
    filters = within(read_where(where), prefixes)
    assert filters is not None
    assert filters.get("session_prefixes") == both
    assert within(read_where("tenant=acme"), ("bolt:",)) is None


def test_an_async_client_waits_for_it(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(says("done"))))
    handle = pump.submit("acme:1", "Go.")

    async def cancel() -> tuple[BulkReport, list[str]]:
        seen: list[str] = []
        async with AsyncClient(pump.settings, pump.wiring.brains, redis_url=pump.wiring.redis_url) as client:
            report = await client.bulk(
                "cancel", "tenant=acme", by="ann", on_progress=lambda now: seen.append(now.state)
            )
        return report, seen

    report, seen = asyncio.run(cancel())
    assert (report.state, report.done, seen[-1]) == ("done", 1, "done")
    pump.settle(handle)
