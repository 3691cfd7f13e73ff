"""A gateway of two cells: its lists say which is away, and whom it has admitted it admits while home's SQL is gone."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from brainq.adapters.sql.store import Store
from brainq.app.access import Tokens, Verb
from brainq.app.access import tokens as module
from brainq.engine.brain.brain import Brain
from brainq.errors import Unreachable
from brainq.runtime.settings.deployment import load_settings
from tests.contrib.cells.two_cells import tenant_in, two_cells, two_servers
from tests.support.gateways import GatewayThread
from tests.support.module_time import replace_time
from tests.support.pump import QUICK, sqlite_url

BRAIN = Brain("cells", "offline:rules")


def test_lists_of_a_gateway_say_which_cell_is_away(tmp_path: Path) -> None:
    with (
        two_servers() as servers,
        two_cells(BRAIN, {name: one.url for name, one in servers.items()}, tmp_path) as cells,
    ):
        settings = load_settings(**{**QUICK, "cells": cells.cells})
        with GatewayThread(settings, BRAIN) as gateway:
            for cell in ("a", "b"):
                sent = {"session_id": f"{tenant_in(cell)}1", "user_message": "Go."}
                assert gateway.http.post("/v1/turns", json=sent).json()["turn_id"].startswith(f"{cell}-")
            page = gateway.http.get("/v1/turns").json()
            assert (len(page["turns"]), page["cells_away"]) == (2, [])
            assert gateway.http.get("/v1/fleet").json()["cells_away"] == []
            servers["b"].stop()
            page = gateway.http.get("/v1/turns").json()
            assert (len(page["turns"]), page["cells_away"]) == (1, ["b"])
            assert gateway.http.get("/v1/sessions").json()["cells_away"] == ["b"]
            assert gateway.http.get("/v1/fleet").json()["cells_away"] == ["b"]
            assert 'brainq_up{cell="b",service="redis"} 0.0' in gateway.http.get("/metrics").text
            assert gateway.http.get("/readyz").status_code == 200


def test_a_token_that_was_seen_goes_on_while_sql_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    replace_time(monkeypatch, module, monotonic=lambda: now[0])
    with Store.open(sqlite_url(tmp_path)) as store:
        tokens, strict = Tokens(store, away_s=100.0), Tokens(store)
        made, short = (tokens.create("a", ["*"], [Verb.READ], seconds).text for seconds in (None, 60.0))
        unseen = tokens.create("b", ["*"], [Verb.READ]).text
        for seen in (made, short):
            assert tokens.check(seen) is not None
            assert strict.check(seen) is not None

        def away(_: str) -> None:
            raise OperationalError("", None, Exception())

        monkeypatch.setattr(store.tokens, "get", away)
        now[0] = 50.0
        assert tokens.check(made) is not None
        assert tokens.check(short) is not None
        for refused, by in ((unseen, tokens), (made, strict)):
            with pytest.raises(Unreachable):
                by.check(refused)
        now[0] = 61.0
        with pytest.raises(Unreachable):
            tokens.check(short)
        now[0] = 106.0
        with pytest.raises(Unreachable):
            tokens.check(made)
