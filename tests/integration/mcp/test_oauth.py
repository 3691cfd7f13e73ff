"""Servers that ask for OAuth tokens, and an authorization server that gives them for a client's credentials."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

import pytest

from brainq import McpOAuth, McpServer
from brainq.contracts.call import ToolFailure, ToolSuccess
from brainq.engine.calls.executor import BoundedToolExecutor
from brainq.engine.tools.mcp.session import discover
from brainq.engine.tools.mcp.tools import tools_of_server
from tests.integration.mcp.conftest import looked
from tests.support.mcp_servers.guarded import CLIENT, SCOPE, SECRET, Authorization, Vault
from tests.unit.engine.calls.support import run


@pytest.fixture
def vault() -> Iterator[Vault]:
    with ExitStack() as stack:
        authorization = stack.enter_context(Authorization())
        yield stack.enter_context(Vault(authorization))


def server_of(vault: Vault) -> McpServer:
    oauth = McpOAuth(client_id=CLIENT, client_secret=SECRET, issuer=vault.authorization.issuer, scope=SCOPE)
    return McpServer("vault", url=vault.url, headers={"X-Tenant": "tenant-of-ours"}, oauth=oauth, start_timeout_s=60)


def test_a_token_is_got_when_the_server_asks_for_one_and_again_when_it_is_refused(
    vault: Vault, executor: BoundedToolExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    server = server_of(vault)
    look, _, _ = tools_of_server(server, looked(server))
    authorization = vault.authorization
    assert authorization.given == ["token-1"]
    first = run(executor, look)
    assert isinstance(first, ToolSuccess), first
    assert first.value == "gold"
    assert authorization.given == ["token-1", "token-2"]  # of a connection of its own
    vault.refused.update(authorization.given)
    again = run(executor, look)
    assert isinstance(again, ToolSuccess), again
    assert authorization.given == ["token-1", "token-2", "token-3"]
    assert vault.headers[-1]["authorization"] == "Bearer token-3"
    assert vault.headers[-1]["x-tenant"] == "tenant-of-ours"
    assert not [sent for sent in authorization.headers if "x-tenant" in sent]
    assert not [secret for secret in (SECRET, *authorization.given) if secret in caplog.text]


def test_calls_with_a_token_run_side_by_side_also_while_it_is_renewed(
    vault: Vault, executor: BoundedToolExecutor
) -> None:
    server = server_of(vault)
    look, meet, _ = tools_of_server(server, looked(server))
    assert isinstance(run(executor, look), ToolSuccess)
    for renewed in (False, True):
        given = len(vault.authorization.given)
        if renewed:
            vault.refused.update(vault.authorization.given)
            vault.refuses_after = vault.refusals + 3  # none is refused after another has fetched a token
        with ThreadPoolExecutor(3) as threads:
            met = [one.result() for one in [threads.submit(run, executor, meet) for _ in range(3)]]
        assert [getattr(one, "value", one) for one in met] == ["met"] * 3
        assert len(vault.authorization.given) == given + renewed  # one for all three


def test_a_change_for_which_no_token_could_be_had_has_failed_and_is_not_unknown(
    vault: Vault, executor: BoundedToolExecutor
) -> None:
    server = server_of(vault)
    _, _, put = tools_of_server(server, looked(server))
    assert isinstance(run(executor, put, {"what": "gold"}), ToolSuccess)
    vault.refused.update(vault.authorization.given)
    vault.authorization.is_down = True
    failed = run(executor, put, {"what": "silver"})
    assert isinstance(failed, ToolFailure), failed
    assert failed.retryable
    assert "Token exchange failed (503)" in failed.error
    assert SECRET not in failed.error
    vault.authorization.is_down = False
    assert isinstance(run(executor, put, {"what": "silver"}), ToolSuccess)


def test_credentials_that_are_refused_and_another_issuer_are_told_without_secrets(vault: Vault) -> None:
    server = server_of(vault)
    assert server.oauth is not None
    wrong = replace(server, oauth=replace(server.oauth, client_secret="sk-another-one"))
    seen = discover([wrong])["vault"]
    assert seen.found is None
    assert "could not be opened: Token exchange failed (401)" in seen.problem
    assert "sk-another-one" not in seen.problem + repr(wrong)
    asked = len(vault.authorization.headers)
    elsewhere = replace(server, oauth=replace(server.oauth, issuer="http://127.0.0.1:1"))
    seen = discover([elsewhere])["vault"]
    assert seen.found is None
    assert "http://127.0.0.1:1" in seen.problem
    assert not [sent for sent in vault.authorization.headers[asked:] if "authorization" in sent]
    assert vault.authorization.given == []
