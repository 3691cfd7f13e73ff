"""Regular expressions from outside: what they match, and that each of them ends."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainq.engine.gates import patterns
from brainq.engine.gates.patterns import (
    MAX_LOOKS,
    MAX_PATTERN_CHARS,
    PatternCache,
    TooLongForPattern,
    UnusablePattern,
    check_pattern,
    matches_anywhere,
)

EMAIL = (  # as zod writes it
    r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"
)
HOST = r"^((?!-)[A-Za-z0-9-]{1,63}(?<!-)\.)+[A-Za-z]{2,6}$"
NOT_BLANK = r"^(?!\s*$).+"


@pytest.mark.parametrize(
    ("pattern", "found", "not_found"),
    [
        ("b", "abc", "ac"),
        (r"^\d{4}-\d{2}$", "2026-11", "2026-1\N{ARABIC-INDIC DIGIT ONE}"),
        ("^a$", "a", "a\n"),
        (r"\p{L}", "\N{LATIN SMALL LETTER E WITH ACUTE}", "1"),
        (r"\u0041\/\-", "A/-", "a/-"),
        ("^[[a]$", "[", "b"),
        (EMAIL, "bob.b@example.com", "bob..b@example.com"),
        (EMAIL, "a@b.co", ".a@b.co"),
        (HOST, "a-b.example.com", "a-.example.com"),
        (NOT_BLANK, " x", "   "),
        (r"^(?=.*[A-Z])(?=.*\d).{8,}$", "Passw0rdx", "passw0rdx"),
        (r"^(?!.*(.)\1\1)\w+$", "aabb", "aabbb"),
        (r"(?<year>\d+) \1", "7 7", "7 8"),
        ("x", "x\ud800", "\ud800"),  # a lone half, which models do send
    ],
)
def test_a_pattern_matches_as_json_schema_says(pattern: str, found: str, not_found: str) -> None:
    assert matches_anywhere(pattern, found)
    assert not matches_anywhere(pattern, not_found)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^(a+)+$", "a" * 60 + "!"),
        ("^(a|aa)+$", "a" * 100_000 + "!"),
        ("(x+x+)+y", "x" * 100_000),
        (EMAIL, "a@" + "a." * 5_000 + "!"),
        (NOT_BLANK, " " * 100_000),
        (r"^(?=(a+)+$)", "a" * 60 + "!"),
        (HOST, ".".join(["a" * 60] * 10) + ".c0m"),
    ],
)
def test_a_pattern_that_could_go_back_for_ever_says_no(pattern: str, text: str) -> None:
    assert matches_anywhere(pattern, text) is False


def test_what_would_take_too_long_is_not_tried_to_its_end() -> None:
    with pytest.raises(TooLongForPattern, match=r"60 characters is too long for the pattern"):
        matches_anywhere(r"^((a*)*)*\1b", "a" * 60)
    with pytest.raises(TooLongForPattern, match=r"1,001 characters .* at most 1,000"):
        matches_anywhere(HOST, "a" * 1_001)
    with pytest.raises(TooLongForPattern, match="at most 2,500"):
        matches_anywhere("^.{0,1000}$", "a" * 2_501)
    assert matches_anywhere(r"\S", " " * 999_999 + "a"), "a small one is held to a long text"


@pytest.mark.parametrize(
    "pattern",
    ["(", r"(?P=x)", r"a\Z", "((((a{1000}){1000}){1000})b){1000}", "(?=" * 2_400 + "a" + ")" * 2_400, "\ud800"],
)
def test_a_pattern_that_cannot_be_used_is_said_to_be_so(pattern: str) -> None:
    with pytest.raises(UnusablePattern, match="write"):
        check_pattern(pattern)


def test_a_pattern_is_not_longer_than_it_may_be() -> None:
    check_pattern("a" * MAX_PATTERN_CHARS)
    with pytest.raises(UnusablePattern, match="10,001 characters"):
        check_pattern("a" * (MAX_PATTERN_CHARS + 1))


@pytest.mark.parametrize("start", ["^", "x?"])
@pytest.mark.parametrize("look", ["(?!a)", "(?=.*a)", "(?<!a)", "(?<=b)", r"(b)?\1"])
def test_a_pattern_looks_no_more_often_than_it_may(start: str, look: str) -> None:
    check_pattern(start + look * MAX_LOOKS)
    with pytest.raises(UnusablePattern, match=r"back 9 times; write it with at most 8 looks"):
        check_pattern(start + look * (MAX_LOOKS + 1))


def test_what_the_parts_of_a_pattern_compile_to_bounds_the_texts() -> None:
    large = "(?!.*a.{150}[0-9])"
    assert check_pattern(f"^{large}") <= 3 * 300_000
    with pytest.raises(TooLongForPattern, match="at most 2,500"):
        matches_anywhere("^" + large, "a" * 2_501)
    with pytest.raises(TooLongForPattern, match="at most 1,000"):
        matches_anywhere("^" + large * 8, "a" * 1_001)
    assert matches_anywhere("^" + large * 8, "a" * 1_000)


def test_what_is_kept_of_a_pattern_counts_the_memory_of_each_of_its_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    def held(compiled: Any) -> int:
        return compiled.held_bytes

    kept = PatternCache[Any](1_000_000_000, held)
    monkeypatch.setattr(patterns, "COMPILED_PATTERNS", kept)
    check_pattern("^a$")
    once = kept.held_bytes
    check_pattern(r"(?<!a)b(?<!c)d(?<!e)f")  # an engine a look, and one for what stands before each
    assert kept.held_bytes - once > 4 * 1_000_000


def test_looks_that_read_all_of_a_text_share_the_steps() -> None:
    """Some 4,000 ways through the repeated choice: more than the steps of a pattern of eight looks."""
    two = r"^(?:(?=a)(?:a|a\B)){12}(?=b)"
    assert matches_anywhere(two, "a" * 20) is False
    with pytest.raises(TooLongForPattern, match="too long"):
        matches_anywhere(two + "|c(?=a)(?=a)(?=a)(?=a)(?=a)(?=a)", "a" * 20)


_PIECES = st.tuples(
    st.sampled_from(["a", "b", ".", "[ab]", r"\)", "[)(|]", "(?:a|b)", "(ab)", r"\(", r"\w"]),
    st.sampled_from(["", "*", "+", "?"]),
).map("".join)
_CHOICES = st.lists(st.lists(_PIECES, max_size=3).map("".join), min_size=1, max_size=2).map("|".join)
_LOOKS = st.tuples(
    st.sampled_from(["(?=", "(?!"]), _CHOICES, st.just(")"), st.sampled_from(["", "", "", "*", "?"])
).map("".join)
_PATTERNS = st.tuples(st.lists(_LOOKS, min_size=1, max_size=3).map("".join), _CHOICES, st.sampled_from(["", "$"]))


@given(_PATTERNS, st.text("ab()|", max_size=6))
def test_a_pattern_with_looks_matches_what_one_without_limits_does(parts: tuple[str, str, str], text: str) -> None:
    pattern = "^" + "".join(parts)
    options = jsonschema_rs.FancyRegexOptions()
    try:
        whole: Any = jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=options)
    except jsonschema_rs.ValidationError:
        return  # none of the expressions made here that this engine takes
    assert matches_anywhere(pattern, text) is whole.is_valid(text)


def test_it_keeps_what_was_asked_for_last_within_its_bytes() -> None:
    made: list[str] = []

    def make(key: str) -> str:
        made.append(key)
        return key

    cache = PatternCache[str](10, len)
    for key in ("aaaa", "bbbb", "aaaa", "cccc", "aaaa"):
        assert cache.get(key, make) == key
    assert made == ["aaaa", "bbbb", "cccc"]
    assert cache.held_bytes == 8
    cache.get("bbbb", make)
    assert made[3:] == ["bbbb"], "it was forgotten, as nobody had asked for it for longest"
    cache.get("d" * 11, make)
    assert cache.get("bbbb", make) == "bbbb"
    assert made[4:] == ["d" * 11], "what is too large for it pushes nothing out"
    assert cache.held_bytes == 8
