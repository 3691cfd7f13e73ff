"""Regular expressions of schemas, matched in bounded time, and the cache of compiled ones. They mean what ECMA
262 says, as in JSON schema.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from brainq.text.surrogates import clean

Value = TypeVar("Value")
MAX_PATTERN_CHARS = 10_000
MAX_LOOKS = 8
"""Looks ahead and behind, references and groups that do not go back, in one pattern."""
_SIZE_LIMITS = ((5_000, 1_000_000), (30_000, 100_000), (300_000, 10_000), (1_250_000, 2_500))
"""Bytes that a pattern's parts compile to together, and the longest text it is held to: two seconds at worst."""
_BACKTRACK_BYTES = (5_000, 30_000, 300_000)
_BACKTRACK_CHARS = 1_000
_BACKTRACK_STEPS = 10_000
_FREE_LOOKS = 2  # more of them share the steps
_CACHE_BYTES = 1_000_000  # of an engine's own, that it may fill while it matches
_KEPT_BYTES = 64_000_000
_LOOK = re.compile(r"\(\?<?[=!]|\(\?>|\\[1-9k]|[*+?}]\+")
_QUANTIFIERS = ("*", "+", "?", "{")


class PatternCache(Generic[Value]):
    """What was compiled lately, bounded by what it may hold and not by how many there are. Safe between threads.

    most_bytes   of all that it keeps together; what is larger by itself is not kept
    size         how many bytes a value may come to hold
    """

    def __init__(self, most_bytes: int, size: Callable[[Value], int]) -> None:
        self._most_bytes = most_bytes
        self._size = size
        self._kept: OrderedDict[str, Value] = OrderedDict()
        self._lock = threading.Lock()
        self.held_bytes = 0

    def get(self, key: str, make: Callable[[str], Value]) -> Value:
        """Raises what `make` raises."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        value = make(key)
        size = self._size(value)
        with self._lock:
            if size <= self._most_bytes and key not in self._kept:
                self._kept[key] = value
                self.held_bytes += size
                while self.held_bytes > self._most_bytes:
                    self.held_bytes -= self._size(self._kept.popitem(last=False)[1])
        return value


# Regular expressions of schemas, matched in bounded time whoever wrote them.
#
# They are what JSON schema says they are, ECMA 262's. An engine that reads a text once takes nearly all of them; its
# time grows with the text and with the size of what the expression compiles to, so a large one is held to short texts
# alone. What looks around or back is not for that engine. Where it looks ahead at the very beginning, as `^(?!\s*$)`
# does, each look is an expression of its own; anything else goes to one that goes back, and gives up after so many
# steps. A look or a reference may read all of the text at each step, and holds memory of its own: a pattern has few
# of them.


class UnusablePattern(ValueError):
    """No engine here takes it; the words say why."""


class TooLongForPattern(ValueError):
    """A text is not held to this pattern: it would take too long."""


@dataclass(frozen=True, slots=True)
class _PatternPart:
    """One engine of a pattern.

    matches: returns whether the text contains what the part looks for. Raises TooLongForPattern.
    bytes: the largest size of the compiled part.
    engines: the number of engines, each with its own memory.
    """

    matches: Callable[[str], bool]
    is_wanted: bool
    max_chars: int
    bytes: int
    engines: int = 1


@dataclass(frozen=True, slots=True)
class _CompiledPattern:
    """max_chars: the longest text that is matched against it."""

    parts: tuple[_PatternPart, ...]
    max_chars: int

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)

    @property
    def held_bytes(self) -> int:
        return self.bytes + _CACHE_BYTES * sum(part.engines for part in self.parts)


def _no_time_check() -> None:
    """Of who has no time to keep."""


def matches_anywhere(pattern: str, text: str, look: Callable[[], None] = _no_time_check) -> bool:
    """Whether `text` matches `pattern` anywhere. `look` is called before each part of the pattern, and may raise.

    Raises UnusablePattern and TooLongForPattern.
    """
    compiled = _compiled(pattern)
    text = clean(text)
    most = compiled.max_chars
    if len(text) > most:
        raise TooLongForPattern(
            f"a text of {len(text):,} characters is not held to the pattern {shown_pattern(pattern)}; at most "
            f"{most:,} are"
        )
    for part in compiled.parts:
        look()
        if part.matches(text) is not part.is_wanted:
            return False
    return True


def check_pattern(pattern: str) -> int:
    """How many bytes it compiles to, at most. Raises UnusablePattern."""
    return _compiled(pattern).bytes


def shown_pattern(pattern: str) -> str:
    return repr(pattern if len(pattern) <= 80 else pattern[:77] + "...")


COMPILED_PATTERNS: PatternCache[_CompiledPattern] = PatternCache(_KEPT_BYTES, lambda compiled: compiled.held_bytes)


def _compiled(pattern: str) -> _CompiledPattern:
    """Raises UnusablePattern."""
    return COMPILED_PATTERNS.get(pattern, _compile)


def _compile(pattern: str) -> _CompiledPattern:
    if len(pattern) > MAX_PATTERN_CHARS:
        raise UnusablePattern(
            f"the pattern {shown_pattern(pattern)} has {len(pattern):,} characters; write it with at most "
            f"{MAX_PATTERN_CHARS:,}"
        )
    if clean(pattern) != pattern:
        raise UnusablePattern("a pattern holds half of a surrogate pair; write whole characters")
    if (whole := _linear_part(pattern)) is not None:
        return _CompiledPattern((whole,), whole.max_chars)
    if (looks := len(_LOOK.findall(pattern))) > MAX_LOOKS:
        raise UnusablePattern(
            f"the pattern {shown_pattern(pattern)} looks ahead, behind or back {looks:,} times; write it with at most "
            f"{MAX_LOOKS} looks, such as one with choices ((?!a|b) for (?!a)(?!b)), or as several patterns under allOf"
        )
    parts = [_linear_part(part, is_wanted) for part, is_wanted in split_lookaheads(pattern)]
    if parts and None not in parts:
        return _combined(pattern, tuple(part for part in parts if part is not None))
    looking = _backtracking_part(pattern, looks)
    return _CompiledPattern((looking,), looking.max_chars)


def _combined(pattern: str, parts: tuple[_PatternPart, ...]) -> _CompiledPattern:
    """Parts are held to a text one after the other: what they may cost adds up."""
    size = sum(part.bytes for part in parts)
    for most_bytes, most_chars in _SIZE_LIMITS:
        if size <= most_bytes:
            return _CompiledPattern(parts, most_chars)
    raise UnusablePattern(
        f"the parts of the pattern {shown_pattern(pattern)} are too large together; write them with shorter "
        "ranges, and "
        "bound a text by minLength and maxLength"
    )


def split_lookaheads(pattern: str) -> list[tuple[str, bool]]:
    """`^(?=A)(?!B)C` as `^(?:A)`, which has to be found, `^(?:B)`, which must not, and `^C`.

    Empty where the pattern has no such beginning, or may mean something else than these.
    """
    rest = pattern.removeprefix("^")
    if rest == pattern or "[]" in pattern or "[^]" in pattern:  # where such a class ends depends on who reads it
        return []
    parts: list[tuple[str, bool]] = []
    while rest.startswith(("(?=", "(?!")):
        end = _closing(rest)
        if end < 0 or rest[end + 1 :].startswith(_QUANTIFIERS):
            return []
        parts.append((f"^(?:{rest[3:end]})", rest[2] == "="))
        rest = rest[end + 1 :]
    if not parts or _has_choice(rest):
        return []
    return [*parts, (f"^{rest}", True)]


def _closing(text: str) -> int:
    """Where the group that `text` begins with ends; -1 where it does not."""
    depth = 0
    for at, sign in _plain_characters(text):
        depth += (sign == "(") - (sign == ")")
        if depth == 0:
            return at
    return -1


def _has_choice(text: str) -> bool:
    """Whether it has a | that is in no group, or a bracket too many."""
    depth = 0
    for _, sign in _plain_characters(text):
        depth += (sign == "(") - (sign == ")")
        if depth < 0 or (sign == "|" and depth == 0):
            return True
    return False


def _plain_characters(text: str) -> list[tuple[int, str]]:
    """The characters that are neither escaped nor in a class, and where they stand."""
    found: list[tuple[int, str]] = []
    is_class = is_escaped = False
    for at, sign in enumerate(text):
        if is_escaped:
            is_escaped = False
        elif sign == "\\":
            is_escaped = True
        elif is_class:
            is_class = sign != "]"
        elif sign == "[":
            is_class = True
        else:
            found.append((at, sign))
    return found


def _linear_part(pattern: str, is_wanted: bool = True) -> _PatternPart | None:
    """By the engine that reads a text once; None where the pattern is none for it."""
    from jsonschema_rs import Draft202012Validator, RegexOptions, ValidationError

    for most_bytes, most_chars in _SIZE_LIMITS:
        options = RegexOptions(size_limit=most_bytes, dfa_size_limit=_CACHE_BYTES)
        try:
            validator = Draft202012Validator({"pattern": pattern}, pattern_options=options)
        except ValidationError:
            continue
        return _PatternPart(validator.is_valid, is_wanted, most_chars, most_bytes)
    return None


def _backtracking_part(pattern: str, looks: int) -> _PatternPart:
    """By the backtracking engine. Each lookaround, and the part between two of them, has one that reads once."""
    from jsonschema_rs import Draft202012Validator, FancyRegexOptions, ValidationError, ValidationErrorKind

    engines = 2 * looks + 1
    steps = _BACKTRACK_STEPS * _FREE_LOOKS // max(_FREE_LOOKS, looks)
    for most_bytes in _BACKTRACK_BYTES:
        options = FancyRegexOptions(backtrack_limit=steps, size_limit=most_bytes, dfa_size_limit=_CACHE_BYTES)
        with suppress(ValidationError):
            validator: Any = Draft202012Validator({"pattern": pattern}, pattern_options=options)
            break
    else:
        raise UnusablePattern(
            f"the pattern {shown_pattern(pattern)} is none of ECMA 262, which JSON schema's patterns are, or too "
            "large; write "
            "it in that form ($ for \\Z, \\1 for (?P=name)), and bound a text by minLength and maxLength"
        )

    def finds(text: str) -> bool:
        for error in validator.iter_errors(text):
            if not isinstance(error.kind, ValidationErrorKind.Pattern):
                raise TooLongForPattern(
                    f"a text of {len(text):,} characters is not held to the pattern {shown_pattern(pattern)}: "
                    "that would take "
                    "too long"
                )
            return False
        return True

    return _PatternPart(finds, True, _BACKTRACK_CHARS, most_bytes * engines, engines)
