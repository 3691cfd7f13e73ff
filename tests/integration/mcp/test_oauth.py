"""Servers that ask for OAuth tokens, and an authorization server that gives them for a client's credentials."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from brainq import McpOAuth, McpServer
from brainq.calls.executor import BoundedToolExecutor
from brainq.contracts.outcome import ToolSuccess
from brainq.tools.mcp.discover import discover
from brainq.tools.mcp.tools import tools_of
from tests.integration.mcp.conftest import looked
from tests.support.mcp_servers.guarded import CLIENT, SCOPE, SECRET, Authorization, Vault
from tests.unit.calls.support import run


@pytest.fixture
def vault() -> Iterator[Vault]:
    with ExitStack() as stack:
        authorization = stack.enter_context(Authorization())
        yield stack.enter_context(Vault(authorization))


def server_of(vault: Vault) -> McpServer:
    oauth = McpOAuth(client_id=CLIENT, client_secret=SECRET, issuer=vault.authorization.issuer, scope=SCOPE)
    return McpServer(
        "vault", url=vault.url, headers={"X-Tenant": "tenant-of-ours"}, oauth=oauth, start_timeout_s=60
    )


def test_a_token_is_got_when_the_server_asks_for_one_and_again_when_it_is_refused(
    vault: Vault, executor: BoundedToolExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    server = server_of(vault)
    (look,) = tools_of(server, looked(server))
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
