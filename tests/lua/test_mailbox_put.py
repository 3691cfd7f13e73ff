"""mailbox_put.lua: input for a turn that lives."""

from __future__ import annotations

from tests.lua.rig import TID, Rig

ITEM = '{"client_message_id":"m1","text":"more"}'


def test_input_is_accepted_once(rig: Rig) -> None:
    rig.active()
    assert rig.run("mailbox_put", item=ITEM) == ["ACCEPTED"]
    assert rig.run("mailbox_put", item="other") == ["ALREADY", "accepted", "active"]
    assert rig.client.lrange(rig.names(TID)["mailbox"], 0, -1) == [ITEM]
    assert rig.events().count("input.accepted") == 1


def test_a_turn_that_waits_takes_it_too(rig: Rig) -> None:
    rig.active()
    rig.run("turn_submit", tid="t02")
    assert rig.run("mailbox_put", tid="t02", item=ITEM) == ["ACCEPTED"]


def test_a_turn_that_is_over_is_sealed(rig: Rig) -> None:
    assert rig.run("mailbox_put", item=ITEM) == ["GONE"]
    rig.closing()
    assert rig.run("mailbox_put", item=ITEM) == ["SEALED", "closing"]
    assert rig.client.exists(rig.names(TID)["receipts"]) == 0


def test_the_same_input_again_gets_its_receipt_after_the_end(rig: Rig) -> None:
    rig.owned()
    rig.run("mailbox_put", item=ITEM)
    rig.run("turn_end", stop_reason="max_steps")
    assert rig.run("mailbox_put", item=ITEM) == ["ALREADY", "bounced", "closing"]


def test_a_mailbox_takes_so_many_inputs_that_nobody_has_read(rig: Rig) -> None:
    rig.owned()
    for number in range(2):
        assert rig.run("mailbox_put", message_id=f"m{number}", item='{"client_message_id":"m"}', most=2) == ["ACCEPTED"]
    assert rig.run("mailbox_put", message_id="m2", item="{}", most=2) == ["FULL", 2, 50]
    assert rig.run("mailbox_put", message_id="m1", item="{}", most=2) == ["ALREADY", "accepted", "active"]
    rig.run("step_begin", drain=1)
    assert rig.turn()["mail_bytes"] == "25"
    assert rig.run("mailbox_put", message_id="m2", item="{}", most=2) == ["ACCEPTED"]


def test_a_mailbox_takes_so_many_bytes_and_any_one_input(rig: Rig) -> None:
    rig.owned()
    assert rig.run("mailbox_put", message_id="m1", item="x" * 100, most_bytes=50) == ["ACCEPTED"]
    assert rig.run("mailbox_put", message_id="m2", item="x", most_bytes=50) == ["FULL", 1, 100]


def test_a_tenant_that_is_in_another_cell_or_about_to_be_is_sent_nothing(rig: Rig) -> None:
    rig.active()
    rig.client.hset(rig.keys.moved, mapping={"acme:": "b 3", "globex:": " 2"})
    assert rig.run("mailbox_put", item=ITEM, cell_tenant="acme:") == ["MOVED", "b", "3"]
    assert rig.run("mailbox_put", item=ITEM, cell_tenant="globex:") == ["MOVING"]
    assert rig.client.exists(rig.names(TID)["mailbox"], rig.names(TID)["receipts"]) == 0
    assert rig.run("mailbox_put", item=ITEM, cell_tenant="umbrella:") == ["ACCEPTED"]
