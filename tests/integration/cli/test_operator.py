"""Operator and `Client.find`: what people mean by the beginning of an id, and what is known without Redis."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from brainq import InvalidInput, Operator, SetupError, TurnNotFound
from brainq.client.client import Client
from brainq.runtime.settings.deployment import Settings


def test_a_turn_is_found_by_its_id_its_beginning_and_its_request_key(client: Client) -> None:
    one = client.submit("s1", "one", turn_id="turn-a1", request_key="order-1")
    client.submit("s1", "two", turn_id="turn-a2")
    assert {client.find(sought).turn_id for sought in ("turn-a1", "order-1")} == {one.turn_id}
    assert client.find("turn-a2").session_id == "s1"
    with pytest.raises(InvalidInput, match="turn-a2, turn-a1"):
        client.find("turn-a")
    for sought in ("", "turn-b"):
        with pytest.raises(TurnNotFound):
            client.find(sought)


def test_an_operator_needs_no_brain_and_lists_what_is_live(client: Client, settings: Settings) -> None:
    live, queued = (client.submit("s1", text).turn_id for text in ("one", "two"))
    with Operator(settings) as operator:
        assert operator.why_away == ""
        assert [turn.turn_id for turn in operator.turns(state="active")] == [live]
        assert [turn.turn_id for turn in operator.turns(state="queued")] == [queued]
        assert operator.client.session("s1").live() == live
        assert operator.given_up(live) == []
        with pytest.raises(InvalidInput, match="is not one of queued"):
            operator.turns(state="odd")


def test_an_operator_without_redis_goes_on_from_sql(client: Client, settings: Settings) -> None:
    turn = client.submit("s1", "one").turn_id
    nowhere = settings.model_copy(update={"redis_url": SecretStr("redis://:secret@127.0.0.1:1/0")})
    with Operator(nowhere) as operator:
        facts = operator.facts(turn)
        assert (facts.state, facts.snapshot) == ("accepted", None)
        assert operator.why_away in facts.next
        assert "secret" not in facts.next
        assert [listed.state for listed in operator.turns()] == ["accepted"]
        with pytest.raises(SetupError, match="does not answer"):
            _ = operator.client


@pytest.mark.usefixtures("no_database")
def test_where_nothing_is_no_empty_database_is_made(settings: Settings) -> None:
    nowhere = settings.model_copy(update={"redis_url": SecretStr("redis://127.0.0.1:1/0")})
    with pytest.raises(SetupError, match="does not answer"):
        Operator(nowhere)
    assert not list(settings.data_dir.glob("*.db"))
