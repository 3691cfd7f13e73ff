"""`brainq spend` and `GET /v1/spend` read the same report: a table, CSV and JSON."""

from __future__ import annotations

import json

from brainq.client.client import Client
from brainq.client.connection import wiring_of
from brainq.contracts.model import Spend
from brainq.errors import ExitCode
from tests.support.commands import Brainq


def spent(client: Client, session: str, usd: float | None) -> None:
    turn = client.submit(session, "hello").turn_id
    store = wiring_of(client).store
    with store.database.transaction() as connection:
        store.spends.write(connection, turn, [Spend(step=1, model="m", cost_usd=usd, input_tokens=1200)])


def test_the_table_csv_and_json_are_one_report(brainq: Brainq, client: Client) -> None:
    assert "no model calls were logged in this time" in brainq("spend").err
    spent(client, "acme:1", 1.5)
    spent(client, "beta:1", None)
    page = brainq("spend", "--by", "tenant", "--by", "model")
    assert page.code == 0, page.err
    head, first, second = page.out.splitlines()
    assert head.split() == ["tenant", "model", "calls", "input", "output", "usd", "without", "a", "price"]
    assert first.split() == ["acme:", "m", "1", "1,200", "0", "1.50"]
    assert second.split()[-1] == "1"
    assert "1.50 US dollars; 1 call to models without a known price, not included" in page.err
    (line,) = json.loads(brainq("spend", "--tenant", "acme:", "--json").out)
    assert (line["cost_usd"], line["calls"]) == (1.5, 1)
    assert brainq("spend", "--by", "tenant", "--csv").out.splitlines()[1].startswith("acme:,1,0,1200,")


def test_what_cannot_be_is_refused(brainq: Brainq) -> None:
    refused = brainq("spend", "--by", "tool", "--by", "model")
    assert refused.code == ExitCode.USAGE
    assert "tool calls have no model" in refused.err
