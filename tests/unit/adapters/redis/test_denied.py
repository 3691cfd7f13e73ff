"""A command that a managed service does not permit is told from any other error."""

from __future__ import annotations

import pytest
import redis
from redis.exceptions import NoPermissionError

from brainq.adapters.redis.connection import is_denied, server_name


@pytest.mark.parametrize(
    "reply",
    [
        NoPermissionError("User x has no permissions to run the 'info' command"),
        redis.ResponseError("unknown command 'psubscribe', with args beginning with: "),
        redis.ResponseError("ERR unknown command `CONFIG`, with args beginning with: `GET`"),
        redis.ResponseError("unknown subcommand 'UNBLOCK'. Try CLIENT HELP."),
        redis.ResponseError("ERR command is not allowed"),
    ],
)
def test_a_denied_command(reply: redis.ResponseError) -> None:
    assert is_denied(reply)


@pytest.mark.parametrize(
    "reply",
    [
        redis.ResponseError("MISCONF Redis is configured to save RDB snapshots, but it cannot"),
        redis.ResponseError("wrong number of arguments for 'info' command"),
        redis.ConnectionError("unknown command"),
        "unknown command",
        None,
    ],
)
def test_anything_else(reply: object) -> None:
    assert not is_denied(reply)


def test_a_server_is_named_as_far_as_it_is_known() -> None:
    assert server_name({"redis_version": "7.2.4", "valkey_version": "9.1.0"}) == "Valkey 9.1.0"
    assert server_name({"redis_version": "7.4.1"}) == "Redis 7.4.1"
    assert server_name({}) == "Redis"
