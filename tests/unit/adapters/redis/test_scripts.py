"""The loader of the scripts: what it refuses, and that every script is one it takes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from redis.exceptions import NoScriptError, ResponseError

from brainq.adapters.redis.keys import Keys
from brainq.adapters.redis.people import RedisHolds
from brainq.adapters.redis.script_headers import HeaderField, HeaderReply, parse_signature
from brainq.adapters.redis.script_text import LUA, NAMES
from brainq.adapters.redis.scripts import Scripts
from brainq.adapters.redis.turns import RedisTurns
from brainq.app.wiring import doorbells
from brainq.contracts.claim import TurnClaim
from brainq.contracts.people import Brake
from brainq.errors import ScriptError
from brainq.runtime.settings.deployment import Settings

BELLS = doorbells(Settings(redis_url=None))
CLAIM = TurnClaim("s", "t", "w", 3, 0)
BROKEN = ("t1", "broken", "t2")
MOST_LINES = 80


class Replies:
    """Stands for a Redis client: answers every script with one reply."""

    def __init__(self, *reply: str, knows: bool = True) -> None:
        self.reply = list(reply)
        self.knows = knows
        self.sent: list[tuple[Any, ...]] = []

    def execute_command(self, *words: Any) -> list[str]:
        self.sent.append(words)
        if words[0] == "EVALSHA" and not self.knows:
            raise NoScriptError
        return self.reply


class Forgetful(Replies):
    """Stands for a Redis that has forgotten all scripts, and refuses to run any for turn `broken`."""

    def replies(self, commands: list[Any]) -> list[Any]:
        return [NoScriptError() for _ in commands]

    def execute_command(self, *words: Any) -> list[str]:
        if words[0] == "EVAL" and any("broken" in str(word) for word in words[2:]):
            raise ResponseError("WRONGTYPE")
        return super().execute_command(*words)


def header(keys: str = "turn", argv: str = "owner fence:n", reply: str = "OK | LOST why") -> str:
    return f"--[[\nWhat it does.\n\nKEYS   {keys}\nARGV   {argv}\nREPLY  {reply}\n]]\nreturn {{'OK'}}\n"


def scripts(client: Any) -> Scripts:
    return Scripts(client, Keys("bq:"), BELLS)


def brake(turn_id: str) -> Brake:
    return Brake(
        kind="hold",
        id="h",
        session_id="s1",
        turn_id=turn_id,
        reason="",
        on_timeout="deny",
        timeout_s=9.0,
        remaining_s=9.0,
    )


def test_a_header_is_a_signature() -> None:
    parsed = parse_signature("x", header("holders leases", "owner fence:n cost:f? items..."))
    assert (parsed.about, parsed.keys) == ("What it does.", ("holders", "leases"))
    assert parsed.args == (HeaderField("owner"), HeaderField("fence", "n"), HeaderField("cost", "f?"))
    assert parsed.more_args == HeaderField("items")
    assert parsed.replies == (HeaderReply("OK"), HeaderReply("LOST", (HeaderField("why"),)))
    assert parsed.prelude().splitlines() == [
        "local holders = KEYS[1]",
        "local leases = KEYS[2]",
        "local owner = ARGV[1]",
        "local fence = tonumber(ARGV[2])",
        "local cost = ARGV[3]",
        "local items = {}",
        "for i = 4, #ARGV do items[i - 3] = ARGV[i] end",
    ]


def test_replies_may_go_on_in_the_next_line() -> None:
    parsed = parse_signature("x", header(reply="OK |\n       DROP why:TurnState/gone\n       | SENT names:ONE/TWO..."))
    assert parsed.replies[1:] == (
        HeaderReply("DROP", (HeaderField("why", "TurnState/gone"),)),
        HeaderReply("SENT", rest=HeaderField("names", "ONE/TWO")),
    )


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("return 1", r"x\.lua: must begin with a --\[\["),
        ("--[[\nKEYS turn\nREPLY OK\n]]\n", r"x\.lua: the header lacks ARGV"),
        (header(argv="next"), r"x\.lua: \['next'\] may not be used as a name"),
        (header(keys="end"), r"x\.lua: \['end'\] may not be used as a name"),
        (header(argv="state:TurnStat"), r"x\.lua: state is of an unknown type 'TurnStat'"),
        (header(reply="OK | LOST why:m"), r"x\.lua: why is of an unknown type 'm'"),
    ],
)
def test_a_wrong_header_is_refused(source: str, message: str) -> None:
    with pytest.raises(ScriptError, match=message):
        parse_signature("x", source)


def turns(client: Any) -> RedisTurns:
    return RedisTurns(scripts(client), lease_s=1.0, keep_session_s=1.0)


def test_an_undeclared_reply_is_refused() -> None:
    with pytest.raises(ScriptError, match=r"replied 'MAYBE', its header declares \['CANCEL', 'LOST', 'OK'\]"):
        turns(Replies("MAYBE")).beat(CLAIM)


def test_a_server_that_does_not_know_the_script_is_sent_it() -> None:
    client = Replies("OK", knows=False)
    assert turns(client).beat(CLAIM) == "OK"
    text = scripts(client).loaded["turn_beat"].text
    assert [words[0] for words in client.sent] == ["EVALSHA", "EVAL"]
    assert client.sent[1][1:] == (text, 1, "bq:{s}:t:t", "w", 3, 1000, "")


def test_what_may_ring_publishes_its_session_s_outbox() -> None:
    client, flushed = Replies("OK"), list[str]()
    outbox: Any = SimpleNamespace(flush=flushed.append)
    loaded = Scripts(cast(Any, client), Keys("bq:"), BELLS, outbox)
    RedisTurns(loaded, lease_s=1.0, keep_session_s=1.0).beat(CLAIM)
    assert flushed == []
    client.reply = ["RELEASED"]
    RedisHolds(loaded, keep_session_s=1.0).release("s2", "t", "h")
    assert flushed == ["s2"]


@pytest.mark.parametrize("name", NAMES)
def test_includes_are_pasted_once(name: str) -> None:
    client: Any = Replies()
    text = scripts(client).loaded[name].text
    assert "@include" not in text
    functions = re.findall(r"^local function (\w+)", text, re.MULTILINE)
    assert len(functions) == len(set(functions))


@pytest.mark.parametrize("name", NAMES)
def test_a_script_is_short(name: str) -> None:
    assert len((LUA / f"{name}.lua").read_text().splitlines()) <= MOST_LINES


@pytest.mark.parametrize("name", NAMES)
def test_a_script_returns_what_it_declares(name: str) -> None:
    source = (LUA / f"{name}.lua").read_text()
    returned = set(re.findall(r"\{'([A-Z]+)'", source)) | set(re.findall(r"(?:and|or) '([A-Z]{4,})'", source))
    returned |= {"CALL", "TURN"} if "lib/stay_call\n" in source else set()
    returned |= {"FINAL"} if "lib/stay_final\n" in source else set()
    assert parse_signature(name, source).words == returned


@pytest.mark.parametrize("name", NAMES)
def test_every_reply_of_a_script_is_tested(name: str) -> None:
    texts = [path.read_text() for path in (Path(__file__).parents[3] / "lua").glob("test_*.py")]
    tested = "".join(text for text in texts if re.search(rf"\b{name}\b", text))
    missing = {
        word for word in parse_signature(name, (LUA / f"{name}.lua").read_text()).words if f'"{word}"' not in tested
    }
    assert not missing


def test_what_is_refused_hides_no_other_reply_where_redis_had_forgotten_the_scripts() -> None:
    loaded = scripts(Forgetful("HELD", knows=False))
    first, refused, last = RedisHolds(loaded, keep_session_s=1.0).place_all([brake(turn) for turn in BROKEN])
    assert (first, last) == ("HELD", "HELD")
    assert isinstance(refused, ResponseError)


class ForgotTheLast(Replies):
    """Knows every script of a pipeline but the last one's, and runs each for the first time only once."""

    def replies(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        *known, last = commands
        return [*(self.execute_command(*words) for words in known), NoScriptError(last[1])]


def test_what_ran_before_a_forgotten_script_runs_once() -> None:
    client = ForgotTheLast("HELD")
    holds = RedisHolds(scripts(client), keep_session_s=1.0)
    assert holds.place_all([brake("t1"), brake("t2")]) == ["HELD", "HELD"]
    assert [words[6] for words in client.sent] == ["t1", "t2"]
