"""The audit log: every act of a person or a token is one row, whichever front it came by."""

from __future__ import annotations

from typing import Any

from brainq.adapters.sql.prune import prune
from brainq.app.access import Tokens
from brainq.client.connection import wiring_of
from brainq.contracts.actor import acting_as
from brainq.engine.models.scripted import calls, says
from tests.support.people import Pumps, Watched, brain_of

WRITE = calls(("write", {"name": "b"}))


def seen(client: Any, **filters: Any) -> list[tuple[str, str, str]]:
    return [(act.act, act.who, act.subject or act.turn_id) for act in client.audit(**filters)]


def test_each_act_is_one_row_with_who_and_to_what(pumps: Pumps) -> None:
    pump = pumps(brain_of(Watched(WRITE, says("done")), approval=True))
    client = pump.client
    handle = pump.submit("acme:s1", "Go.")
    pump.drain()
    (approval,) = handle.approvals()
    client.approve(approval.id, by="ann")
    pump.finish(handle)
    assert handle.cancel("too late") == "ended"
    with acting_as("bob", "cli"):
        client.stop("tool", "write", reason="wrong list")
        client.lift("tool", "write")
        assert not client.lift("tool", "write")
        client.session("acme:s2").pause("lunch")
    Tokens(pump.wiring.store).create("web", ["acme:"], ["read"])
    assert seen(client) == [
        ("make token", "", "web"),
        ("pause", "bob", ""),
        ("lift", "bob", "tool write"),
        ("stop", "bob", "tool write"),
        ("approve", "ann", approval.id),
    ]
    assert [(act.source, act.reason) for act in client.audit(act="stop")] == [("cli", "wrong list")]
    assert [act.turn_id for act in client.audit(who="ann")] == [handle.turn_id]
    assert seen(client, turn=handle.turn_id) == [("approve", "ann", approval.id)]
    assert [act.act for act in client.audit(session_prefixes=("acme:",))] == ["pause", "approve"]
    first, second = client.audit(limit=2)
    assert [act.act for act in client.audit(limit=1, after=second.id)] == ["lift"]
    assert prune(pump.wiring.store, -60.0)["acts"] == 5
    assert (first.id > second.id, client.audit()) == (True, ())


def test_an_act_whose_row_cannot_be_written_stands(pumps: Pumps, monkeypatch: Any) -> None:
    pump = pumps(brain_of(Watched(says("done"))))
    home = wiring_of(pump.client)

    def away(**_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(home.store.acts, "add", away)
    pump.client.stop("tool", "write")
    assert len(pump.client.stops()) == 1


def test_whoever_raises_a_budget_is_in_the_log(pumps: Pumps) -> None:
    client = pumps(brain_of(Watched(says("done")))).client
    client.budgets.set("all", per="day", usd=10, by="ann")
    client.budgets.raise_by("all", "day", 100, by="mallory")
    client.budgets.set("all", per="day", usd=None, by="ann")
    assert seen(client) == [
        ("set budget", "ann", "all day as configured"),
        ("raise budget", "mallory", "all day +100"),
        ("set budget", "ann", "all day 10"),
    ]
