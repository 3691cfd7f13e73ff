"""Which turn a call of an MCP client is, and who may cancel it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from brainq.access import Caller, Verb
from brainq.contrib.mcp_server.following import read_round
from brainq.contrib.mcp_server.requests import CallsInFlight
from brainq.errors import InvalidInput
from brainq.tools.mcp.calls import IDEMPOTENCY_KEY


def asked(name: str, sessions: str, *verbs: Verb, scope: str = "", **meta: str) -> Any:
    caller = Caller(name, (sessions,), frozenset(verbs) or frozenset(Verb))
    return SimpleNamespace(
        caller=caller, scope=scope, meta=meta, context=SimpleNamespace(request_id=1), is_over_http=True
    )


class FakeClient:
    """Has one turn, whatever it is asked for."""

    def __init__(self) -> None:
        self.sought: list[str] = []
        self.cancelled: list[str] = []
        self.session_id = "acme:1"

    async def find(self, key: str) -> FakeClient:
        self.sought.append(key)
        return self

    async def cancel(self, reason: str) -> None:
        self.cancelled.append(reason)


def test_the_keys_of_two_callers_never_meet() -> None:
    calls = CallsInFlight(FakeClient())  # pyright: ignore[reportArgumentType]
    for more in ({IDEMPOTENCY_KEY: "order 17"}, {"scope": "the same"}):
        keys = {
            calls.request_key(asked(name, sessions, **more))
            for name in ("web", "app")
            for sessions in ("acme:", "evil:")
        }
        assert len(keys) == 4, more
        assert calls.request_key(asked("web", "acme:", **more)) in keys, "and it is the same when it is sent again"


@pytest.mark.parametrize(
    ("caller", "cancels"),
    [
        (asked("web", "acme:", Verb.READ, Verb.SUBMIT, Verb.DECIDE, scope="s"), False),
        (asked("web", "evil:", scope="s"), False),
        (asked("web", "acme:", Verb.STEER, scope="s"), True),
    ],
)
def test_a_call_is_cancelled_by_who_may(caller: Any, cancels: bool) -> None:
    client = FakeClient()

    async def cancel() -> None:
        calls = CallsInFlight(client)  # pyright: ignore[reportArgumentType]
        calls.cancelled(caller, 1)
        await calls.close()

    asyncio.run(cancel())
    assert (len(client.sought), bool(client.cancelled)) == (1, cancels)


def test_what_is_brought_back_is_about_one_turn() -> None:
    def state(turn_id: str) -> str:
        return f'{{"turn_id": "{turn_id}", "seq": 0, "asks": {{"{"a" * 26}-c1-0": "x"}}}}'

    assert read_round(state("a" * 26)).turn_id == "a" * 26
    with pytest.raises(InvalidInput, match="another turn"):
        read_round(state("b" * 26))
