"""What is pasted into a script: all that its body reaches, where it is in scope, and no more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from redis.exceptions import ResponseError

from brainq.adapters.redis.keys import Keys
from brainq.adapters.redis.script_text import NAMES, read_script
from brainq.adapters.redis.scripts import Scripts
from brainq.adapters.redis.turns import RedisTurns
from brainq.app.wiring import doorbells
from brainq.contracts.claim import TurnClaim
from brainq.errors import ScriptError
from brainq.runtime.settings.deployment import Settings

GENERATED = doorbells(Settings(redis_url=None)).generated()
GLOBALS = frozenset(
    re.findall(r"\w+", "redis cjson math string table tonumber tostring ipairs pairs next type unpack KEYS ARGV error")
)
WORDS = frozenset(
    re.findall(
        r"\w+",
        "and break do else elseif end false for if in local nil not or repeat return then true until while",
    )
)
TOKEN = re.compile(
    r"--\[\[.*?\]\]|--[^\n]*|\[==\[.*?\]==\]|'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|\w+|\.\.+|==|\S", re.DOTALL
)


def unknown_names(text: str) -> Iterator[str]:
    """The names that the Lua in `text` uses where nothing of that name is in scope."""
    tokens = [token for token in TOKEN.findall(text) if not token.startswith("--")]
    scopes: list[set[str]] = [set(GLOBALS)]
    brackets: list[str] = []
    i = 0
    while i < len(tokens):
        token, before = tokens[i], tokens[i - 1] if i else ""
        if token in ("(", "{", "["):
            brackets.append(token)
        elif token in (")", "}", "]"):
            brackets.pop()
        elif token == "function":
            if re.match(r"[A-Za-z_]", tokens[i + 1]):
                i += 1
                if before == "local":
                    scopes[-1].add(tokens[i])
                elif not any(tokens[i] in scope for scope in scopes):
                    yield tokens[i]
            end = tokens.index(")", i)
            scopes.append(set(tokens[i + 2 : end]) - {","})
            i = end
        elif token in ("local", "for"):
            names: set[str] = set()
            while tokens[i + 1] not in ("=", "in", "function") and (
                tokens[i + 1] == "," or not names or tokens[i] == ","
            ):
                i += 1
                names.add(tokens[i])
            if token == "for":
                scopes.append(names)
                brackets.append("for")
            else:
                scopes[-1] |= names
        elif token == "do":
            if brackets[-1:] == ["for"]:
                brackets.pop()
            else:
                scopes.append(set())
        elif token in ("then", "repeat"):
            scopes.append(set())
        elif token in ("end", "elseif", "until"):
            scopes.pop()
        elif token == "else":
            scopes[-1] = set()
        elif re.match(r"[A-Za-z_]", token) and token not in WORDS and before not in (".", ":"):
            is_key = brackets[-1:] == ["{"] and before in ("{", ",") and tokens[i + 1] == "="
            if not is_key and not any(token in scope for scope in scopes):
                yield token
        i += 1


@pytest.mark.parametrize("name", NAMES)
def test_a_script_uses_only_what_is_in_scope(name: str) -> None:
    assert not list(unknown_names(read_script(name, GENERATED).text))


def test_a_name_that_is_not_in_scope_is_found() -> None:
    text = "local a = 1\ndo local b = a end\nfor i, c in ipairs({d = a}) do a = c + b end\nreturn c.e"
    assert list(unknown_names(text)) == ["b", "c"]


@pytest.mark.parametrize("name", NAMES)
def test_a_script_has_one_text(name: str) -> None:
    text = read_script(name, GENERATED).text
    read_script.cache_clear()
    assert read_script(name, GENERATED).text == text


def with_now(lua: str) -> str:
    """The text of turn_beat, which uses `now`, where `lib/now` is this."""
    return read_script("turn_beat", (("lib/now", lua),)).text


def test_what_the_body_does_not_reach_is_left_out() -> None:
    text = with_now(
        "local function unused() return 1 end\n\nlocal function used() return 2 end\n\nlocal now = used()\n"
    )
    assert "local function used() return 2 end\nlocal now = used()\n" in text
    assert "unused" not in text


LAZY = """
local count = 0
local STEP = 2
local function add(n) count = count + n end

-- @lazy
local function seldom({parameter})
  add(STEP)
end

local now = seldom(1)
"""


def test_what_only_a_lazy_function_needs_is_in_it() -> None:
    text = with_now(LAZY.format(parameter="n"))
    assert "\nlocal count = 0\n" in text  # a variable is one, however often what uses it is pasted
    assert "local function seldom(n)\n  -- lib/now.lua\n  local STEP = 2\n  local function add(n)" in text


def test_a_parameter_may_not_hide_what_is_pasted_behind_it() -> None:
    with pytest.raises(ScriptError, match=r"lib/now\.lua:7: a parameter hides \['count'\]"):
        with_now(LAZY.format(parameter="count"))


def test_a_lazy_function_has_room_for_what_it_needs() -> None:
    with pytest.raises(ScriptError, match=r"lib/now\.lua:2: a lazy function has lines of its own"):
        with_now("-- @lazy\nlocal function seldom() return 1 end\n\nlocal now = seldom()\n")


def test_a_read_of_named_fields_is_spelled_out() -> None:
    text = with_now(
        "local function look(key)\n  local t = read(key, {'a',\n    'b'})\n  return t.a\nend\nlocal now = look('k')\n"
    )
    assert "  local t = redis.call('HMGET', key, 'a', 'b')\n  t = {a = t[1], b = t[2]}\n  return t.a\n" in text


def test_a_failure_names_the_file_and_line() -> None:
    client: Any = _Failing()
    turns = RedisTurns(
        Scripts(client, Keys("bq:"), doorbells(Settings(redis_url=None))), lease_s=1.0, keep_session_s=1.0
    )
    with pytest.raises(ResponseError, match=r"^lib/now\.lua:2: user_script:\d+: oh"):
        turns.beat(TurnClaim("s", "t", "owner", 1, 0))


class _Failing:
    """Stands for a client of a Redis where the line that reads the clock fails."""

    def execute_command(self, *_: object) -> object:
        lines = read_script("turn_beat", GENERATED).text.splitlines()
        at = next(i for i, line in enumerate(lines, 1) if "'TIME'" in line)
        raise ResponseError(f"user_script:{at}: oh")
