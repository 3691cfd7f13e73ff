"""`brainq token`: made, listed, revoked; the secret is shown once and kept nowhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from brainq.adapters.sql.store import Store
from brainq.app.access import Caller, Tokens, Verb
from brainq.errors import ExitCode
from brainq.runtime.settings.deployment import Settings
from tests.support.commands import Brainq


def checked(settings: Settings, token: str) -> Caller | None:
    with Store.open(settings.sql_url.get_secret_value()) as store:
        return Tokens(store).check(token)


def test_a_token_is_made_listed_and_revoked(brainq: Brainq, settings: Settings) -> None:
    made = brainq("token", "create", "acme-web", "--sessions", "acme:", "--verb", "submit", "--verb", "read")
    token = made.out.strip()
    assert made.code == 0
    assert "token " + token[3:15] + " of 'acme-web' for read, submit in sessions acme:" in made.err
    assert "not shown again" in made.err
    assert "from now on every gateway that uses this database requires a token" in made.err
    second = brainq("token", "create", "other", "--sessions", "*", "--verb", "read")
    assert "from now on" not in second.err  # it was said
    assert checked(settings, token) == Caller("acme-web", ("acme:",), frozenset({Verb.READ, Verb.SUBMIT}))

    listed = brainq("token", "list")
    assert all(word in listed.out for word in (token[3:15], "acme-web", "acme:", "read, submit", "live"))
    revoked = brainq("token", "revoke", token[3:15])
    assert (revoked.code, revoked.out) == (0, "")
    assert revoked.err.startswith("revoked: token ")
    assert "no valid token is left" not in revoked.err
    last = brainq("token", "revoke", second.out.strip())
    assert "no valid token is left" in last.err
    assert "brainq token create" in last.err
    assert "BRAINQ_SQL_URL or BRAINQ_DATA_DIR" in last.err
    assert checked(settings, token) is None
    assert "revoked" in brainq("token", "list").out
    assert token[16:] not in listed.out + listed.err + revoked.err


def test_programs_get_json(brainq: Brainq, settings: Settings) -> None:
    arguments = ("--sessions", "*", "--verb", "operate", "--expires-in", "90d", "--json")
    made = json.loads(brainq("token", "create", "ops", *arguments).out)
    assert (made["sessions"], made["verbs"], made["state"]) == (["*"], ["operate"], "live")
    assert made["expires_at"] > made["created_at"]
    assert checked(settings, made.pop("token")) is not None
    (listed,) = json.loads(brainq("token", "list", "--json").out)
    assert listed.pop("last_used_at") is not None
    assert listed == {name: value for name, value in made.items() if name != "last_used_at"}
    revoked = json.loads(brainq("token", "revoke", made["id"], "--json").out)
    assert (revoked["state"], revoked["id"]) == ("revoked", made["id"])


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (("--sessions", "acme", "--verb", "read"), "end it with a colon: 'acme:'"),
        (("--sessions", "", "--verb", "read"), "'*' for all sessions"),
        (("--sessions", "acme:", "--verb", "write"), "read, submit, configure, steer, decide, operate"),
        (("--sessions", "acme:"), "--verb"),
        (("--verb", "read"), "--sessions"),
        (("--sessions", "acme:", "--verb", "read", "--expires-in", "soon"), "90m, 12h, 30d or 8w"),
        (("--sessions", "acme:", "--verb", "read", "--expires-in", "0d"), "above 0"),
    ],
)
def test_what_is_wrong_is_refused_with_the_remedy(
    brainq: Brainq, tmp_path: Path, arguments: tuple[str, ...], remedy: str
) -> None:
    ran = brainq("token", "create", "x", *arguments)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert remedy in ran.err


def test_an_unknown_token_is_not_found_and_not_repeated(brainq: Brainq) -> None:
    brainq("token", "create", "x", "--sessions", "*", "--verb", "read")
    ran = brainq("token", "revoke", f"bq_{'0' * 12}_{'s' * 43}")
    assert ran.code == ExitCode.NOT_FOUND
    assert "brainq token list" in ran.err
    assert "sss" not in ran.err


@pytest.mark.usefixtures("no_database")
def test_without_a_database_there_is_nothing_to_list(brainq: Brainq, tmp_path: Path) -> None:
    ran = brainq("token", "list")
    assert ran.code == ExitCode.SETUP
    assert "BRAINQ_SQL_URL" in ran.err
    assert not (tmp_path / "brainq.db").exists()
