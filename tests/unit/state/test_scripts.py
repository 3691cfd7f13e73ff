"""The loader of the scripts: what it refuses, and that every script is one it takes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from redis.exceptions import NoScriptError

from brainq.errors import ScriptError
from brainq.settings import Settings
from brainq.state.scripts import LUA, Script, Scripts, signature
from brainq.wiring import doorbells

BELLS = doorbells(Settings(redis_url=None))
NAMES = sorted(path.stem for path in LUA.glob("*.lua"))
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


def header(keys: str = "turn", argv: str = "owner fence:n", reply: str = "OK | LOST why") -> str:
    return f"--[[\nWhat it does.\n\nKEYS   {keys}\nARGV   {argv}\nREPLY  {reply}\n]]\nreturn {{'OK'}}\n"


def beat(client: Any) -> Script:
    return Script(client, "turn_beat", BELLS)


GIVEN: dict[str, Any] = {"turn": "k", "owner": "w", "fence": 3, "lease_ms": 1000}


def test_a_header_is_a_signature() -> None:
    parsed = signature("x", header("holders leases lanes...", "owner fence:n items..."))
    assert (parsed.keys, parsed.more_keys) == (("holders", "leases"), "lanes")
    assert (parsed.args, parsed.numbers, parsed.more_args) == (("owner", "fence"), {"fence"}, "items")
    assert parsed.replies == {"OK", "LOST"}
    assert parsed.prelude().splitlines()[2:] == ["local owner = ARGV[1]", "local fence = tonumber(ARGV[2])"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("return 1", r"x\.lua: must begin with a --\[\["),
        ("--[[\nKEYS turn\nREPLY OK\n]]\n", r"x\.lua: the header lacks ARGV"),
        (header(argv="next"), r"x\.lua: \['next'\] may not be used as a name"),
        (header(keys="end"), r"x\.lua: \['end'\] may not be used as a name"),
    ],
)
def test_a_wrong_header_is_refused(source: str, message: str) -> None:
    with pytest.raises(ScriptError, match=message):
        signature("x", source)


def test_a_missing_name_is_named() -> None:
    given = {name: value for name, value in GIVEN.items() if name != "fence"}
    with pytest.raises(
        ScriptError, match=r"turn_beat: 'fence' was not given; it takes turn, owner, fence, lease_ms"
    ):
        beat(Replies("OK"))(**given)


def test_an_unknown_name_is_named() -> None:
    with pytest.raises(
        ScriptError, match=r"turn_beat: \['fense'\] is not among turn, owner, fence, lease_ms"
    ):
        beat(Replies("OK"))(**GIVEN, fense=3)


def test_an_undeclared_reply_is_refused() -> None:
    with pytest.raises(ScriptError, match=r"replied 'MAYBE', its header declares \['CANCEL', 'LOST', 'OK'\]"):
        beat(Replies("MAYBE"))(**GIVEN)


def test_names_become_positions() -> None:
    client = Replies("OK")
    script = beat(client)
    assert script(**GIVEN) == ["OK"]
    assert client.sent == [("EVALSHA", script.sha, 1, "k", "w", 3, 1000)]


def test_a_server_that_does_not_know_the_script_is_sent_it() -> None:
    client = Replies("OK", knows=False)
    script = beat(client)
    script(**GIVEN)
    assert [words[:2] for words in client.sent] == [("EVALSHA", script.sha), ("EVAL", script.text)]


def test_an_unknown_script_is_named() -> None:
    client: Any = Replies("OK")
    with pytest.raises(AttributeError, match=r"there is no script turn_bet\.lua"):
        Scripts(client, BELLS).turn_bet()


@pytest.mark.parametrize("name", NAMES)
def test_includes_are_pasted_once(name: str) -> None:
    client: Any = Replies()
    text = Script(client, name, BELLS).text
    assert "@include" not in text
    assert "@doorbells" not in text
    functions = re.findall(r"^local function (\w+)", text, re.MULTILINE)
    assert len(functions) == len(set(functions))


@pytest.mark.parametrize("name", NAMES)
def test_a_script_is_short(name: str) -> None:
    assert len((LUA / f"{name}.lua").read_text().splitlines()) <= MOST_LINES


@pytest.mark.parametrize("name", NAMES)
def test_a_script_returns_what_it_declares(name: str) -> None:
    source = (LUA / f"{name}.lua").read_text()
    returned = set(re.findall(r"\{'([A-Z]+)'", source)) | set(re.findall(r"(?:and|or) '([A-Z]{4,})'", source))
    assert signature(name, source).replies == returned


@pytest.mark.parametrize("name", NAMES)
def test_every_reply_of_a_script_is_tested(name: str) -> None:
    tested = (Path(__file__).parents[2] / "lua" / f"test_{name}.py").read_text()
    missing = {
        word
        for word in signature(name, (LUA / f"{name}.lua").read_text()).replies
        if f'"{word}"' not in tested
    }
    assert not missing
