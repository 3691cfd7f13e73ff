"""Methods that run scripts: where their arguments come from, and what their replies become."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import pytest

import brainq.adapters.redis as adapters_redis
from brainq.adapters.redis.finals import RedisFinalChain
from brainq.adapters.redis.keys import Keys
from brainq.adapters.redis.script_methods import Parameter, ScriptMethod, script, script_call
from brainq.adapters.redis.script_text import NAMES
from brainq.adapters.redis.scripts import ScriptCall, Scripts
from brainq.app.wiring import doorbells
from brainq.contracts.claim import FinalStepClaim, NoClaim, TurnClaim
from brainq.contracts.message import Message
from brainq.errors import ScriptError
from brainq.runtime.settings.deployment import Settings

CLAIM = TurnClaim("s", "t", "w", 3, 0)


class Replies:
    """Stands for a Redis client: answers every script with one reply."""

    def __init__(self, *reply: Any) -> None:
        self.reply = list(reply)
        self.sent: list[tuple[Any, ...]] = []

    def execute_command(self, *words: Any) -> list[Any]:
        self.sent.append(words[2:])
        return self.reply


def scripts(client: Any) -> Scripts:
    return Scripts(client, Keys("bq:"), doorbells(Settings(redis_url=None)))


class Turns:
    def __init__(self, client: Any) -> None:
        self._scripts = self._owned = scripts(client)
        self._lease_ms = 1000
        self._keep_session_ms = 9

    @script("turn_beat", OK=True)
    def beat(self, claim: TurnClaim, *, under_way: str = "1:1") -> Literal[True, "CANCEL", "LOST"]: ...

    @script("turn_begin", items=Parameter("messages"), prompt_hash="h")
    def begin(self, claim: TurnClaim, messages: Sequence[Message], earlier: int = 2) -> str: ...

    @script_call("hold_release", hold="h")
    def release(self, session_id: str, turn_id: str) -> ScriptCall[str]: ...

    @script("money_grant", spent=0.5, is_full=False, returned=None)
    def grant(self, counter: str, granted: float | None, keep_ms: int) -> None: ...

    @script("turn_park", parked_line=Parameter("line"), lost="")
    def park(self, claim: TurnClaim, line: str, name: str, after_ms: int) -> str: ...

    @script("quarantine_wait", after_ms=Parameter("later_s"))
    def wait(self, session_id: str, turn_id: str, fence: int, later_s: float) -> None: ...


def test_an_argument_is_a_constant_a_parameter_a_field_or_an_attribute() -> None:
    client = Replies("OK")
    assert Turns(client).beat(CLAIM) is True
    assert Turns(client).beat(CLAIM, under_way="2:1") is True
    turn = "bq:{s}:t:t"
    assert client.sent == [(1, turn, "w", 3, 1000, "1:1"), (1, turn, "w", 3, 1000, "2:1")]
    client.reply = ["BEGUN"]
    Turns(client).begin(CLAIM, [Message(role="user", content="hello", turn="t")])
    keys = ("bq:{s}:t:t", "bq:{s}:history", "bq:{s}:session")
    assert client.sent[-1][:8] == (3, *keys, "w", 3, "h", 2)
    assert '"content":"hello"' in client.sent[-1][8]


def test_a_number_keeps_its_precision_and_none_is_empty() -> None:
    client = Replies("GRANTED")
    Turns(client).grant("c", 0.1 + 0.2, 9)
    assert client.sent[0] == (1, "c", "0.30000000000000004", "0.5", "0", "", 9)


def test_a_key_may_be_a_parameter_of_another_name() -> None:
    client = Replies("PARKED")
    Turns(client).park(CLAIM, "the line", "all/day", 9)
    assert client.sent[0][1] == "the line"


def test_seconds_are_sent_as_ms() -> None:
    client = Replies("WAITS")
    Turns(client).wait("s", "t", 4, 1.5)
    assert client.sent[0][-2:] == (4, 1500)


def test_a_call_may_be_run_later() -> None:
    client = Replies("RELEASED")
    call = Turns(client).release("s", "t")
    assert client.sent == []
    assert call.run() == "RELEASED"


def test_a_reply_has_fields_of_closed_types() -> None:
    def claimed(*reply: str) -> object:
        chain = RedisFinalChain(scripts(Replies(*reply)), lease_s=1.0, keep_turn_s=1.0)
        return chain._claim("s", "t", "log", "w").run()  # pyright: ignore[reportPrivateUsage]

    assert claimed("DROP", "gone") == NoClaim("gone")
    given = claimed("GO", "7", "1", "0", "1", "2", "shop", "40", "end")
    assert given == (7, 1, 0, True, 2, "shop", 40, "end")
    with pytest.raises(ScriptError, match=r"finalize_claim: replied 'asleep', its header declares \['gone', "):
        claimed("DROP", "asleep")


def test_a_signature_that_does_not_fit_its_header_is_refused() -> None:
    class Wrong:
        @script("turn_beat")
        def beat(self, claim: TurnClaim, text: str) -> str: ...

        @script("call_token", GIVEN=str)
        def token(self, claim: FinalStepClaim, owner: str) -> str: ...

        @script("call_token")
        def bare(self, claim: FinalStepClaim, owner: str) -> str: ...

    with pytest.raises(ScriptError, match=r"turn_beat\.lua: .*parameter 'text'"):
        _ = Wrong().beat
    with pytest.raises(ScriptError, match=r"call_token\.lua: bare does not say what becomes of the reply GIVEN"):
        _ = Wrong().bare


def _declared() -> Iterator[tuple[type, ScriptMethod]]:
    for module in pkgutil.iter_modules(adapters_redis.__path__, "brainq.adapters.redis."):
        for owner in vars(importlib.import_module(module.name)).values():
            if isinstance(owner, type) and owner.__module__ == module.name:
                found = (getattr(each, "script_method", each) for each in list(vars(owner).values()))
                yield from ((owner, method) for method in found if isinstance(method, ScriptMethod))


def test_every_script_has_a_method_that_fits_it() -> None:
    found = list(_declared())
    for owner, method in found:
        code = method.make().__code__
        settings = {name for name in code.co_names if name.startswith("_")} - {"_scripts", "_owned"}
        inits: list[Any] = [vars(base).get("__init__") for base in owner.__mro__[:-1]]
        known = {name for init in inits if init is not None for name in init.__code__.co_names}
        assert settings <= known, f"{owner.__name__}.{code.co_name} reads {sorted(settings - known)}"
    assert {method.script for _, method in found} == set(NAMES)
