"""Tokens: made once, checked often, seen revoked, and never readable from what is kept."""

from __future__ import annotations

import logging
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from brainq.adapters.sql.store import Store
from brainq.app.access import Caller, Tokens, Verb
from brainq.errors import InvalidInput, Unreachable
from tests.support.wait import wait_until

READ = [Verb.READ]


@pytest.fixture
def tokens(store: Store) -> Tokens:
    """Every check asks SQL."""
    return Tokens(store, kept_s=0)


def test_a_token_lets_its_caller_in(tokens: Tokens) -> None:
    made = tokens.create("acme-web", ["acme:", "beta:"], ["submit", Verb.READ], expires_in_s=3600)

    assert tokens.check(made.text) == Caller("acme-web", ("acme:", "beta:"), frozenset({Verb.READ, Verb.SUBMIT}))
    assert made.row.state == "live"
    assert made.row.verbs == ("read", "submit")
    assert 3590 < (made.row.remaining_s or 0) <= 3600


def test_nothing_else_lets_in(tokens: Tokens) -> None:
    made, other = (tokens.create(name, ["*"], READ).text for name in "ab")
    last = "A" if made[-1] != "A" else "B"
    wrong = [
        *("", "bq_", "x", made[:-1], made + "x", made.upper(), made + "\n", " " + made, made[:-1] + last),
        *(made[:16] + other[16:], made.replace("_", "-", 1), f"bq_{'0' * 12}_{'A' * 43}"),
        f"bq_{made[3:15]}_{'é' * 43}",
    ]
    assert [given for given in wrong if tokens.check(given) is not None] == []
    assert tokens.check(made) is not None


def test_a_revoked_token_is_seen_within_the_time_that_a_check_is_kept(store: Store) -> None:
    desk, gateway, patient = Tokens(store), Tokens(store, kept_s=0.05), Tokens(store, kept_s=3600)
    made = desk.create("a", ["*"], READ)
    assert gateway.check(made.text) == patient.check(made.text) is not None

    assert (desk.revoke(made.text) or made.row).state == "revoked"
    again = desk.revoke(made.row.token_id)
    assert patient.check(made.text) is not None, "its check is kept for an hour"
    wait_until(lambda: gateway.check(made.text) is None, "the gateway saw it")
    assert desk.check(made.text) is None
    assert again is not None
    assert again.revoked_at == desk.list()[0].revoked_at


@pytest.mark.parametrize("whole", [True, False])
def test_who_revokes_a_token_knows_it_no_more(store: Store, whole: bool) -> None:
    tokens = Tokens(store, kept_s=3600)
    made = tokens.create("a", ["*"], READ)
    assert tokens.check(made.text) is not None
    tokens.revoke(made.text if whole else made.row.token_id)
    assert (tokens.cached_caller(made.text), tokens.check(made.text)) == (None, None)


def test_an_unknown_token_cannot_be_revoked(tokens: Tokens) -> None:
    assert tokens.revoke("0" * 12) is None
    assert tokens.revoke("'; DROP TABLE tokens") is None


def test_an_expired_token_lets_nobody_in(tokens: Tokens, store: Store) -> None:
    made = tokens.create("a", ["*"], READ, expires_in_s=3600)
    assert tokens.check(made.text) is not None
    with store.engine.connect() as connection:
        connection.execute(text("UPDATE tokens SET expires_at = created_at"))

    assert tokens.check(made.text) is None
    assert tokens.list()[0].state == "expired"


def test_a_check_is_kept_no_longer_than_the_token_lives(store: Store) -> None:
    patient = Tokens(store, kept_s=3600)
    made = patient.create("a", ["*"], READ, expires_in_s=0.2)
    wait_until(lambda: patient.check(made.text) is None, "it expired")


def test_a_wrong_secret_is_refused_of_a_token_that_is_kept(store: Store) -> None:
    patient = Tokens(store, kept_s=3600)
    made = patient.create("a", ["*"], READ)
    assert patient.check(made.text) is not None
    assert patient.check(made.text[:16] + "A" * 43) is None
    assert patient.check(made.text) is not None


def test_use_is_noted_once_a_minute(tokens: Tokens, store: Store) -> None:
    made = tokens.create("a", ["*"], READ)
    assert made.row.last_used_at is None
    tokens.check(made.text[:16] + "A" * 43)
    assert tokens.list()[0].last_used_at is None, "a wrong secret is no use"
    tokens.check(made.text)
    first = tokens.list()[0].last_used_at
    assert first is not None
    tokens.check(made.text)
    assert tokens.list()[0].last_used_at == first
    assert store.tokens.used(made.row.token_id) is False
    with store.engine.connect() as connection:
        long_ago = "1999-01-01 00:00:00.000"
        connection.execute(
            text("UPDATE tokens SET last_used_at = :at"),
            {"at": long_ago + ("+00" * (store.engine.dialect.name != "sqlite"))},
        )
    tokens.check(made.text)
    assert (tokens.list()[0].last_used_at or first) >= first


def test_sql_has_no_secret(tokens: Tokens, store: Store, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        made = tokens.create("a", ["*"], READ)
        tokens.check(made.text)
        tokens.revoke(made.text)
    secret = made.text[16:]
    with store.engine.connect() as connection:
        rows = connection.execute(text("SELECT * FROM tokens")).all()
    assert len(rows) == 1
    assert secret not in str(rows)
    assert made.row.secret_hash in str(rows)
    assert secret not in caplog.text + repr(made) + repr(tokens.__dict__)


def test_a_verb_that_is_not_known_gives_nothing(tokens: Tokens, store: Store) -> None:
    made, older = (tokens.create("a", ["acme:"], READ) for _ in range(2))
    with store.engine.connect() as connection:
        update = text("UPDATE tokens SET verbs_json = :verbs WHERE token_id = :id")
        connection.execute(update, {"verbs": '["rule"]', "id": made.row.token_id})
        connection.execute(update, {"verbs": '["rule", "read"]', "id": older.row.token_id})
    assert tokens.check(made.text) is None
    assert tokens.check(older.text) == Caller("a", ("acme:",), frozenset(READ))


def test_what_is_wrong_is_refused_before_anything_is_kept(tokens: Tokens) -> None:
    good: dict[str, object] = {"name": "a", "sessions": ["acme:"], "verbs": ["read"]}
    wrong: list[tuple[str, object]] = [
        *(("name", ""), ("sessions", ["acme"]), ("sessions", []), ("verbs", ["all"]), ("verbs", [])),
        *(("expires_in_s", 0), ("expires_in_s", float("nan")), ("expires_in_s", float("inf"))),
    ]
    for field, value in wrong:
        with pytest.raises(InvalidInput) as refused:
            tokens.create(**{**good, field: value})  # pyright: ignore[reportArgumentType]
        assert refused.value.field == field
    assert tokens.list() == []


def test_without_sql_nobody_is_let_in(tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path / 'a.db'}") as store:
        tokens, kept = Tokens(store, kept_s=0), Tokens(store, kept_s=3600)
        made = tokens.create("a", ["*"], READ)
        assert kept.check(made.text) is not None
        with store.engine.connect() as connection:
            connection.execute(text("ALTER TABLE tokens RENAME TO elsewhere"))
        for ask in (lambda: tokens.check(made.text), tokens.list, lambda: tokens.revoke(made.text)):
            with pytest.raises(Unreachable, match="SQL does not answer"):
                ask()
        assert kept.check(made.text) is not None, "what was checked is kept for its seconds"
        assert tokens.check("nonsense") is None, "what is no token asks nothing"


def test_a_use_that_cannot_be_noted_keeps_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(f"sqlite:///{tmp_path / 'a.db'}") as store:
        tokens = Tokens(store, kept_s=0)
        made = tokens.create("a", ["*"], READ)

        def locked(_: str) -> bool:
            raise sqlite3.OperationalError("database is locked")

        monkeypatch.setattr(store.tokens, "used", locked)
        assert tokens.check(made.text) is not None


def test_a_rows_state_is_of_when_it_was_read(tokens: Tokens) -> None:
    row = tokens.create("a", ["*"], READ, expires_in_s=60).row
    assert replace(row, expires_at=row.read_at).state == "expired"
    assert replace(row, expires_at=row.read_at, revoked_at=row.read_at).state == "revoked"
